// A launch writes, before it waits, what the launch before it may still read.
// hazard: race global
// detail: a launch writes what an earlier one may still read
#include "../program.h"

__global__ void read(const int* from, int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];  // fault: first
}

__global__ void clear(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 0;  // fault: second
  cudaGridDependencySynchronize();
}

int main() {
  auto* a = zeros<int>(256);
  auto* b = zeros<int>(256);
  read<<<2, 128>>>(a, b);
  launch_dependent(nullptr, clear, a);
  return cudaDeviceSynchronize();
}
