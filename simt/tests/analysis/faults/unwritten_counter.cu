// Blocks count from whatever is in the counter, which nothing has set to zero.
// hazard: uninitialized global
#include "../program.h"

__global__ void count(const int* in, unsigned* positive) {
  if (in[blockIdx.x * blockDim.x + threadIdx.x] >= 0) atomicAdd(positive, 1u);  // fault: first
}

int main() {
  unsigned* positive;
  cudaMalloc(&positive, sizeof *positive);
  count<<<4, 64>>>(zeros<int>(256), positive);
  return cudaDeviceSynchronize() != cudaSuccess;
}
