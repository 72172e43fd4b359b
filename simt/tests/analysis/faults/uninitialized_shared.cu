// The last element of a tile is never loaded.
// hazard: uninitialized shared
#include <cuda_runtime.h>

__global__ void difference(const float* in, float* out) {
  __shared__ float tile[129];
  const int i = threadIdx.x;
  tile[i] = in[i];
  __syncthreads();
  out[i] = tile[i + 1] - tile[i];  // fault: first
}

int main() {
  float* data;
  cudaMalloc(&data, 256 * sizeof(float));
  cudaMemset(data, 0, 256 * sizeof(float));
  difference<<<1, 128>>>(data, data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
