// A lock that no thread releases.
// hazard: timeout
#include <cuda_runtime.h>

__global__ void take(int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {  // fault: first
  }
}

int main() {
  int* lock;
  cudaMalloc(&lock, sizeof(int));
  cudaMemset(lock, 0, sizeof(int));
  take<<<1, 2>>>(lock);
  return cudaDeviceSynchronize() != cudaErrorLaunchTimeout;
}
