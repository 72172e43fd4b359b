// A dependent launch reads before it waits for the launch that writes.
// hazard: race global
// detail: a launch reads what an earlier one may still write
#include "../program.h"

__global__ void write(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;  // fault: first
}

__global__ void read(const int* from, int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int early = from[i];  // fault: second
  cudaGridDependencySynchronize();
  to[i] = early;
}

int main() {
  auto* a = zeros<int>(256);
  auto* b = zeros<int>(256);
  write<<<2, 128>>>(a);
  launch_dependent(nullptr, read, a, b);
  return cudaDeviceSynchronize();
}
