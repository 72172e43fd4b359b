// Memory is used after it was freed.
// hazard: out_of_bounds
#include "../program.h"

__global__ void fill(float* out) {
  out[threadIdx.x] = 1;  // fault: first
}

int main() {
  auto* out = zeros<float>(128);
  cudaFree(out);
  fill<<<1, 128>>>(out);
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
