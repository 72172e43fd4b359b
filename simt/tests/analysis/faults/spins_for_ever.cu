// A lock that no thread releases.
// hazard: timeout
#include "../program.h"

__global__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {  // fault: first
  }
}

int main() {
  auto* lock = zeros<int>(1);
  take<<<1, 2>>>(lock);
  return cudaDeviceSynchronize() != cudaErrorLaunchTimeout;
}
