// The last launch waits for the one before it, which has not waited for the first.
// hazard: race global
// detail: a launch reads what an earlier one may still write
#include "../program.h"

__global__ void write(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;  // fault: first
}

__global__ void between(int* to) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 2;
}

__global__ void add(const int* a, const int* b, int* to) {
  cudaGridDependencySynchronize();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int both = b[i] + a[i];  // fault: second
  to[i] = both;
}

int main() {
  auto* a = zeros<int>(256);
  auto* b = zeros<int>(256);
  auto* c = zeros<int>(256);
  write<<<2, 128>>>(a);
  launch_dependent(nullptr, between, b);
  launch_dependent(nullptr, add, a, b, c);
  return cudaDeviceSynchronize();
}
