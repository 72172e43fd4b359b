// A vector access to an address that is no multiple of its size.
// hazard: misaligned
#include "../program.h"

__global__ void copy(const float* in, float* out) {
  const float4 four = reinterpret_cast<const float4*>(in + 1)[threadIdx.x];  // fault: first
  reinterpret_cast<float4*>(out)[threadIdx.x] = four;
}

int main() {
  auto* data = zeros<float>(260);
  copy<<<1, 32>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaErrorMisalignedAddress;
}
