// The last element of a tile is never loaded.
// hazard: uninitialized shared
#include "../program.h"

__global__ void difference(const float* in, float* out) {
  __shared__ float tile[129];
  const int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  out[i] = tile[i + 1] - tile[i];  // fault: first
}

int main() {
  auto* data = zeros<float>(256);
  difference<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
