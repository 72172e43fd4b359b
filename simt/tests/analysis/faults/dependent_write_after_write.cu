// A launch clears, before it waits, what a launch two before it may still write.
// hazard: race global
// detail: a launch writes what an earlier one may still write
#include "../program.h"

__global__ void write(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;  // fault: first
}

__global__ void between(const int* from, int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

__global__ void clear(int* to, const int* x, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 0;  // fault: second
  cudaGridDependencySynchronize();
  y[i] = x[i];
}

int main() {
  auto* sums = zeros<int>(256);
  auto* x = zeros<int>(256);
  auto* numbers = zeros<int>(256);
  auto* y = zeros<int>(256);
  write<<<2, 128>>>(sums);
  launch_dependent(nullptr, between, x, numbers);
  launch_dependent(nullptr, clear, sums, numbers, y);
  return cudaDeviceSynchronize();
}
