// Threads that meet at a cuda::latch, and warps that take turns by a cuda::binary_semaphore.
#include <cuda/latch>
#include <cuda/semaphore>
#include "../program.h"

using Latch = cuda::latch<cuda::thread_scope_block>;
using Semaphore = cuda::binary_semaphore<cuda::thread_scope_block>;

__global__ void turn_about(const int* in, int* out) {
  __shared__ Latch all_wrote;
  __shared__ int row[64];
  if (threadIdx.x == 0) new (&all_wrote) Latch(64);
  __syncthreads();
  row[threadIdx.x] = in[threadIdx.x];
  all_wrote.arrive_and_wait();
  out[threadIdx.x] = row[63 - threadIdx.x];
}

__global__ void one_at_a_time(int* out) {
  __shared__ Semaphore is_free;
  __shared__ int count;
  if (threadIdx.x == 0) {
    new (&is_free) Semaphore(1);
    count = 0;
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    is_free.acquire();
    count += 1;
    is_free.release();
  }
  __syncthreads();
  if (threadIdx.x == 0) *out = count;
}

int main() {
  auto* data = zeros<int>(129);
  turn_about<<<1, 64>>>(data, data + 64);
  one_at_a_time<<<1, 256>>>(data + 128);
  return cudaDeviceSynchronize() != cudaSuccess;
}
