// __syncwarp of half a warp, and the other half reads too.
// hazard: race shared
#include "../program.h"

__global__ void rotate(const float* in, float* out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // fault: first
  __syncwarp(threadIdx.x < 16 ? 0x0000ffff : 0xffff0000);
  out[threadIdx.x] = row[(threadIdx.x + 1) % 32];  // fault: second
}

int main() {
  auto* data = zeros<float>(64);
  rotate<<<1, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
