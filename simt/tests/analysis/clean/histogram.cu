// Counts with atomics in shared and in global memory.
#include <cuda_runtime.h>

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
  unsigned char *in, numbers[5000];
  unsigned* out;
  for (int i = 0; i < 5000; ++i) numbers[i] = i * i;
  cudaMalloc(&in, 5000);
  cudaMalloc(&out, 256 * sizeof(unsigned));
  cudaMemcpy(in, numbers, 5000, cudaMemcpyHostToDevice);
  cudaMemset(out, 0, 256 * sizeof(unsigned));
  histogram<<<5, 96>>>(in, out, 5000);
  return cudaDeviceSynchronize() != cudaSuccess;
}
