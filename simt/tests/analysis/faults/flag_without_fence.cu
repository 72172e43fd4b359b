// A block waits for a flag of the block before it; what the flag announces was written without a fence.
// hazard: race global
#include <cuda_runtime.h>

__global__ void chain(volatile int* flags, int* values) {
  if (threadIdx.x != 0) return;
  const int b = blockIdx.x;
  int before = 0;
  if (b > 0) {
    while (flags[b - 1] == 0) {
    }
    __threadfence();
    before = values[b - 1];  // fault: second
  }
  values[b] = before + 1;  // fault: first
  flags[b] = 1;
}

int main() {
  int* data;
  cudaMalloc(&data, 64 * sizeof(int));
  cudaMemset(data, 0, 64 * sizeof(int));
  chain<<<32, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
