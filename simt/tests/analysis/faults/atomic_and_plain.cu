// Blocks count with an atomic and look at the counter without one.
// hazard: race global
#include <cuda_runtime.h>

__global__ void claim(int* next, int* out) {
  if (threadIdx.x != 0) return;
  if (*next < 3) {                         // fault: first
    out[blockIdx.x] = atomicAdd(next, 1);  // fault: second
  }
}

int main() {
  int* data;
  cudaMalloc(&data, 65 * sizeof(int));
  cudaMemset(data, 0, 65 * sizeof(int));
  claim<<<8, 32>>>(data, data + 1);
  return cudaDeviceSynchronize() != cudaSuccess;
}
