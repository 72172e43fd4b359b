// A barrier that half of the block never reaches.
// hazard: barrier
#include "../program.h"

__global__ void fill(int* out) {
  if (threadIdx.x < 32) {
    out[threadIdx.x] = 1;
    __syncthreads();  // fault: first
  }
}

int main() {
  auto* out = zeros<int>(64);
  fill<<<1, 64>>>(out);
  return cudaDeviceSynchronize() == cudaSuccess;
}
