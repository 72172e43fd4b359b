// Data handed from block to block with cuda::atomic_ref: released by one, acquired by the next.
#include <cuda/atomic>
#include "../program.h"

using Flag = cuda::atomic_ref<int, cuda::thread_scope_device>;

__global__ void chain(int* flags, int* values) {
  const int b = blockIdx.x, t = threadIdx.x;
  if (b > 0) {
    if (t == 0)
      while (Flag(flags[b - 1]).load(cuda::memory_order_acquire) == 0) {
      }
    __syncthreads();
  }
  values[32 * b + t] = b == 0 ? t : values[32 * (b - 1) + 31 - t] + 1;
  __syncthreads();
  if (t == 0) Flag(flags[b]).store(1, cuda::memory_order_release);
}

__global__ void relaxed(int* flags, int* values) {
  const int b = blockIdx.x;
  if (threadIdx.x != 0) return;
  if (b > 0) {
    while (Flag(flags[b - 1]).load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
  }
  values[b] = b == 0 ? 0 : values[b - 1] + 1;
  cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
  Flag(flags[b]).store(1, cuda::memory_order_relaxed);
}

int main() {
  auto* data = zeros<int>(34 * 20);
  chain<<<20, 32>>>(data, data + 40);
  relaxed<<<20, 32>>>(data + 20, data + 40);
  return cudaDeviceSynchronize() != cudaSuccess;
}
