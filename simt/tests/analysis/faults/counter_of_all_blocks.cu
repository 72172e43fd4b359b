// All threads of all blocks count in one word.
// hazard: race global
// detail: a block reads what another writes
#include <cuda_runtime.h>

__global__ void count(int* total) {
  (*total)++;  // fault: first, second
}

int main() {
  int* total;
  cudaMalloc(&total, sizeof(int));
  cudaMemset(total, 0, sizeof(int));
  count<<<4, 64>>>(total);
  return cudaDeviceSynchronize() != cudaSuccess;
}
