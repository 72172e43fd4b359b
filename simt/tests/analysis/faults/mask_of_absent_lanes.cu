// A shuffle whose mask names lanes that have left.
// hazard: mask
#include <cuda_runtime.h>

__global__ void sum(int* data, int count) {
  if (threadIdx.x >= count) return;
  int x = data[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffff, x, step);  // fault: first
  if (threadIdx.x == 0) data[0] = x;
}

int main() {
  int* data;
  cudaMalloc(&data, 32 * sizeof(int));
  cudaMemset(data, 0, 32 * sizeof(int));
  sum<<<1, 32>>>(data, 20);
  return cudaDeviceSynchronize() == cudaSuccess;
}
