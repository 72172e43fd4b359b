// Every block writes one element more than its own.
// hazard: race global
#include <cuda_runtime.h>

__global__ void fill(int* out, int per_block) {
  for (int i = threadIdx.x; i <= per_block; i += blockDim.x) {
    out[blockIdx.x * per_block + i] = blockIdx.x;  // fault: first, second
  }
}

int main() {
  int* out;
  cudaMalloc(&out, 1025 * sizeof(int));
  fill<<<8, 64>>>(out, 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
