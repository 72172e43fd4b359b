// __syncwarp of half a warp, and the other half reads too.
// hazard: race shared
#include <cuda_runtime.h>

__global__ void rotate(const float* in, float* out) {
  __shared__ float row[32];
  row[threadIdx.x] = in[threadIdx.x];  // fault: first
  __syncwarp(threadIdx.x < 16 ? 0x0000ffff : 0xffff0000);
  out[threadIdx.x] = row[(threadIdx.x + 1) % 32];  // fault: second
}

int main() {
  float* data;
  cudaMalloc(&data, 64 * sizeof(float));
  cudaMemset(data, 0, 64 * sizeof(float));
  rotate<<<1, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
