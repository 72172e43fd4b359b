// A vector access to an address that is no multiple of its size.
// hazard: misaligned
#include <cuda_runtime.h>

__global__ void copy(const float* in, float* out) {
  const float4 four = reinterpret_cast<const float4*>(in + 1)[threadIdx.x];  // fault: first
  reinterpret_cast<float4*>(out)[threadIdx.x] = four;
}

int main() {
  float* data;
  cudaMalloc(&data, 260 * sizeof(float));
  cudaMemset(data, 0, 260 * sizeof(float));
  copy<<<1, 32>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaErrorMisalignedAddress;
}
