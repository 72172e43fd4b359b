// A ticket lock that is polled with volatile and passed on with a volatile store.
#include <cuda_runtime.h>

__global__ void add(unsigned* next, volatile unsigned* serving, float* sum) {
  if (threadIdx.x != 0) return;
  const unsigned ticket = atomicAdd(next, 1);
  while (*serving != ticket) {
  }
  __threadfence();
  *sum += 0.5f;
  __threadfence();
  *serving = ticket + 1;
}

int main() {
  unsigned* counters;
  float* sum;
  cudaMalloc(&counters, 2 * sizeof(unsigned));
  cudaMalloc(&sum, sizeof(float));
  cudaMemset(counters, 0, 2 * sizeof(unsigned));
  cudaMemset(sum, 0, sizeof(float));
  add<<<20, 32>>>(counters, counters + 1, sum);
  return cudaDeviceSynchronize() != cudaSuccess;
}
