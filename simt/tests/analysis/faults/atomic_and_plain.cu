// Blocks count with an atomic and look at the counter without one.
// hazard: race global
#include "../program.h"

__global__ void claim(int* next, int* out) {
  if (threadIdx.x != 0) return;
  if (*next < 3) {                         // fault: first
    out[blockIdx.x] = atomicAdd(next, 1);  // fault: second
  }
}

int main() {
  auto* data = zeros<int>(65);
  claim<<<8, 32>>>(data, data + 1);
  return cudaDeviceSynchronize() != cudaSuccess;
}
