// One element more than the shared array has.
// hazard: out_of_bounds
#include "../program.h"

__global__ void fill(float* out) {
  extern __shared__ float row[];
  row[threadIdx.x + 1] = 1;  // fault: first
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x + 1];
}

int main() {
  auto* out = zeros<float>(128);
  fill<<<1, 128, 128 * sizeof(float)>>>(out);
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
