// All blocks count in one word, with an operation that is atomic only within a block.
// hazard: race global
#include "../program.h"

__global__ void count(const int* in, int* count) {
  if (in[threadIdx.x] == 0) atomicAdd_block(count, 1);  // fault: first second
}

int main() {
  auto* data = zeros<int>(128);
  count<<<4, 64>>>(data, data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
