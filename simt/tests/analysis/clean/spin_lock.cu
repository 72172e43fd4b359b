// A lock of atomicCAS and atomicExch around plain accesses, taken by one thread of each warp of each block, and one in
// shared memory.
#include "../program.h"

__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
}

__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}

__global__ void add(int* mutex, int* sum, int* longest) {
  __shared__ int local_mutex, local_sum;
  if (threadIdx.x == 0) local_mutex = local_sum = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    lock(mutex);
    *sum += 1;
    if (*longest < int(threadIdx.x)) *longest = threadIdx.x;
    unlock(mutex);
    lock(&local_mutex);
    local_sum += threadIdx.x;
    unlock(&local_mutex);
  }
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(sum + 1, local_sum);
}

int main() {
  auto* data = zeros<int>(4);
  add<<<12, 128>>>(data, data + 1, data + 3);
  return cudaDeviceSynchronize() != cudaSuccess;
}
