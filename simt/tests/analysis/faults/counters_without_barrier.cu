// A histogram whose bins are set to zero while others count already.
// hazard: race shared
#include "../program.h"

__global__ void histogram(const unsigned char* in, unsigned* out) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;                       // fault: first
  atomicAdd(&bins[in[255 - threadIdx.x]], 1);  // fault: second
  __syncthreads();
  out[threadIdx.x] = bins[threadIdx.x];
}

int main() {
  unsigned char numbers[256];
  for (int i = 0; i < 256; ++i) numbers[i] = i;
  auto* in = zeros<unsigned char>(256);
  auto* out = zeros<unsigned>(256);
  cudaMemcpy(in, numbers, 256, cudaMemcpyHostToDevice);
  histogram<<<1, 256>>>(in, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
