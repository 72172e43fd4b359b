// A shuffle whose mask names lanes that have left.
// hazard: mask
#include "../program.h"

__global__ void sum(int* data, int count) {
  if (threadIdx.x >= count) return;
  int x = data[threadIdx.x];
  for (int step = 16; step > 0; step /= 2) x += __shfl_down_sync(0xffffffff, x, step);  // fault: first
  if (threadIdx.x == 0) data[0] = x;
}

int main() {
  auto* data = zeros<int>(32);
  sum<<<1, 32>>>(data, 20);
  return cudaDeviceSynchronize() == cudaSuccess;
}
