// A spin lock is released without a fence, so the data that it guards may not be written yet.
// hazard: race global
#include "../program.h"

__global__ void add(int* lock, int* total) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  *total += blockIdx.x;  // fault: first, second
  atomicExch(lock, 0);
}

int main() {
  auto* data = zeros<int>(2);
  add<<<8, 32>>>(data, data + 1);
  return cudaDeviceSynchronize() != cudaSuccess;
}
