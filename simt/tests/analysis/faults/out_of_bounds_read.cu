// The last thread reads one element past the end.
// hazard: out_of_bounds
#include "../program.h"

__global__ void differences(const float* in, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[i + 1] - in[i];  // fault: first
}

int main() {
  auto* in = zeros<float>(100);
  auto* out = zeros<float>(100);
  differences<<<1, 128>>>(in, out, 100);
  return cudaDeviceSynchronize() != cudaErrorIllegalAddress;
}
