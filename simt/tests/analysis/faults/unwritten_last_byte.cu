// The first kernel leaves out the last byte, and the second one reads all.
// hazard: uninitialized global
#include "../program.h"

__global__ void fill(unsigned char* data, int n) {
  const int i = threadIdx.x;
  if (i < n - 1) data[i] = 255;
}

__global__ void copy(const unsigned char* data, unsigned char* out) {
  out[threadIdx.x] = data[threadIdx.x];  // fault: first
}

int main() {
  constexpr int n = 62;
  unsigned char *data, *out;
  cudaMalloc(&data, n);
  cudaMalloc(&out, n);
  fill<<<1, n>>>(data, n);
  copy<<<1, n>>>(data, out);
  return cudaDeviceSynchronize() != cudaSuccess;
}
