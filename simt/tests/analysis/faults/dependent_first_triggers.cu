// The same, and the first launch is a dependent one too, and lets the next one start at once.
// hazard: race global
// detail: a launch reads what an earlier one may still write
#include "../program.h"

__global__ void write(int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = 1;  // fault: first
}

__global__ void between(const int* from, int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  cudaGridDependencySynchronize();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i];
}

__global__ void multiply(const int* weight, const int* x, int* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const int early = weight[i];  // fault: second
  cudaGridDependencySynchronize();
  y[i] = early * x[i];
}

int main() {
  auto* weight = zeros<int>(256);
  auto* x = zeros<int>(256);
  auto* numbers = zeros<int>(256);
  auto* y = zeros<int>(256);
  launch_dependent(nullptr, write, weight);
  launch_dependent(nullptr, between, x, numbers);
  launch_dependent(nullptr, multiply, weight, numbers, y);
  return cudaDeviceSynchronize();
}
