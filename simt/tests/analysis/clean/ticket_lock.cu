// A ticket lock that is polled with volatile and passed on with a volatile store.
#include "../program.h"

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
  auto* counters = zeros<unsigned>(2);
  auto* sum = zeros<float>(1);
  add<<<20, 32>>>(counters, counters + 1, sum);
  return cudaDeviceSynchronize() != cudaSuccess;
}
