// The end of a reduction as it was written before Volta.
// hazard: race shared
#include "../program.h"

__device__ void warp_sum(volatile float* partial, int lane) {
  partial[lane] += partial[lane + 32];  // fault: first
  partial[lane] += partial[lane + 16];  // fault: second
}

__global__ void sum(const float* in, float* out) {
  __shared__ float partial[64];
  partial[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) warp_sum(partial, threadIdx.x);
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = partial[threadIdx.x];
}

int main() {
  auto* data = zeros<float>(80);
  sum<<<1, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
