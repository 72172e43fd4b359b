// Atomics of block scope on words that only one block uses, beside wider ones of the same block.
#include <cuda/atomic>
#include "../program.h"

__global__ void count(const int* in, int* counts, int* flags, int* out) {
  __shared__ int here;
  cuda::atomic_ref<int, cuda::thread_scope_block> flag(flags[blockIdx.x]);
  if (threadIdx.x == 0) here = 0;
  __syncthreads();
  atomicAdd_block(&here, in[threadIdx.x]);
  atomicAdd_block(&counts[blockIdx.x], 1);
  atomicAdd(&counts[blockIdx.x], 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    out[blockIdx.x] = here;
    flag.store(1, cuda::memory_order_release);
  } else if (threadIdx.x == 32) {
    while (flag.load(cuda::memory_order_acquire) == 0) {
    }
    out[blockIdx.x] += 1;
    atomicAdd_system(&out[64], 1);
  }
}

__global__ void turn_about(int* counts) {
  if (threadIdx.x == 0) atomicAdd_block(&counts[gridDim.x - 1 - blockIdx.x], 1);
}

int main() {
  auto* data = zeros<int>(256);
  count<<<4, 64>>>(data, data + 64, data + 72, data + 128);
  turn_about<<<4, 32>>>(data + 64);
  return cudaDeviceSynchronize() != cudaSuccess;
}
