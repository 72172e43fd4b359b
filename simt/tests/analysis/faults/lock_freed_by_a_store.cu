// A plain store releases a spin lock.
// hazard: race global
#include "../program.h"

__global__ void add(int* lock, int* total) {
  if (threadIdx.x != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {  // fault: second
  }
  __threadfence();
  atomicAdd(total, 1);
  __threadfence();
  *lock = 0;  // fault: first
}

int main() {
  auto* data = zeros<int>(2);
  add<<<8, 32>>>(data, data + 1);
  return cudaDeviceSynchronize() != cudaSuccess;
}
