// Every block writes one element more than its own.
// hazard: race global
#include "../program.h"

__global__ void fill(int* out, int per_block) {
  for (int i = threadIdx.x; i <= per_block; i += blockDim.x) {
    out[blockIdx.x * per_block + i] = blockIdx.x;  // fault: first, second
  }
}

int main() {
  auto* out = zeros<int>(1025);
  fill<<<8, 64>>>(out, 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
