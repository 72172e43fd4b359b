// A shuffle passes values between lanes; it orders nothing that they do to memory.
// hazard: race shared
#include "../program.h"

__global__ void rotate(const float* in, float* out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // fault: first
  const int from = __shfl_sync(0xffffffff, threadIdx.x + 1, threadIdx.x) % 32;
  out[threadIdx.x] = row[from];  // fault: second
}

int main() {
  auto* data = zeros<float>(64);
  rotate<<<1, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
