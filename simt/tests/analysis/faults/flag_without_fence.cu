// A block waits for a flag of the block before it; what the flag announces was written without a fence.
// hazard: race global
#include "../program.h"

__global__ void chain(volatile int* flags, int* values) {
  if (threadIdx.x != 0) return;
  const int b = blockIdx.x;
  int before = 0;
  if (b > 0) {
    while (flags[b - 1] == 0) {
    }
    __threadfence();
    before = values[b - 1];  // fault: second
  }
  values[b] = before + 1;  // fault: first
  flags[b] = 1;
}

int main() {
  auto* data = zeros<int>(64);
  chain<<<32, 32>>>(data, data + 32);
  return cudaDeviceSynchronize() != cudaSuccess;
}
