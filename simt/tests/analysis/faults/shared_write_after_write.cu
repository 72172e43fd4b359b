// Two warps write one element.
// hazard: race shared
#include "../program.h"

__global__ void halves(const int* in, int* out) {
  __shared__ int halves[64];
  halves[threadIdx.x % 64] = in[threadIdx.x];  // fault: first, second
  __syncthreads();
  out[threadIdx.x] = halves[threadIdx.x % 64];
}

int main() {
  auto* data = zeros<int>(256);
  int numbers[128];
  for (int i = 0; i < 128; ++i) numbers[i] = i;
  cudaMemcpy(data, numbers, sizeof numbers, cudaMemcpyHostToDevice);
  halves<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
