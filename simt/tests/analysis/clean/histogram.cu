// Counts with atomics in shared and in global memory.
#include "../program.h"

__global__ void histogram(const unsigned char* in, unsigned* out, int count) {
  __shared__ unsigned bins[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    atomicAdd(&bins[in[i]], 1);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    if (bins[i]) atomicAdd(&out[i], bins[i]);
}

int main() {
  unsigned char numbers[5000];
  for (int i = 0; i < 5000; ++i) numbers[i] = i * i;
  auto* in = zeros<unsigned char>(5000);
  auto* out = zeros<unsigned>(256);
  cudaMemcpy(in, numbers, 5000, cudaMemcpyHostToDevice);
  histogram<<<5, 96>>>(in, out, 5000);
  return cudaDeviceSynchronize() != cudaSuccess;
}
