// A dependent launch that never waits, of the same kernel as the launch before.
// hazard: race global
// detail: a launch reads what an earlier one may still write
#include "../program.h"

__global__ void next(const int* from, int* to) {
  cudaTriggerProgrammaticLaunchCompletion();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  to[i] = from[i] + 1;  // fault: first second
}

int main() {
  auto* a = zeros<int>(256);
  auto* b = zeros<int>(256);
  auto* c = zeros<int>(256);
  launch_dependent(nullptr, next, a, b);
  launch_dependent(nullptr, next, b, c);
  return cudaDeviceSynchronize();
}
