// All threads of all blocks count in one word.
// hazard: race global
// detail: a block reads what another writes
#include "../program.h"

__global__ void count(int* total) {
  (*total)++;  // fault: first, second
}

int main() {
  auto* total = zeros<int>(1);
  count<<<4, 64>>>(total);
  return cudaDeviceSynchronize() != cudaSuccess;
}
