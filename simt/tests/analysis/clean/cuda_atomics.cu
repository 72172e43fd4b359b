// Warps of one block, and blocks, that wait for each other on cuda::atomic, by every one of its operations.
#include <cuda/atomic>
#include "../program.h"

using OfBlock = cuda::atomic<int, cuda::thread_scope_block>;
using OfDevice = cuda::atomic_ref<int, cuda::thread_scope_device>;

__global__ void hand_over(const int* in, int* out) {
  __shared__ OfBlock flags[4];
  __shared__ int values[4];
  const int warp = threadIdx.x / 32;
  if (threadIdx.x < 4) flags[threadIdx.x].store(0, cuda::std::memory_order_relaxed);
  __syncthreads();
  if (threadIdx.x % 32 != 0) return;
  if (warp == 0) {
    for (int i = 0; i < 4; ++i) {
      values[i] = in[i];
      flags[i].store(1, cuda::std::memory_order_release);
    }
  } else if (warp == 1) {
    while (flags[0].load(cuda::std::memory_order_acquire) == 0) {
    }
    out[0] = values[0];
  } else if (warp == 2) {
    for (int one = 1; !flags[1].compare_exchange_weak(one, 2, cuda::std::memory_order_acq_rel); one = 1) {
    }
    out[1] = values[1];
  } else if (warp == 3) {
    flags[2].wait(0, cuda::std::memory_order_acquire);
    out[2] = values[2];
  } else {
    while (flags[3].fetch_add(0, cuda::std::memory_order_acquire) == 0) {
    }
    out[3] = values[3];
  }
}

__global__ void in_turn(int* turn, int* lock, int* sum) {
  OfDevice whose(*turn), taken(*lock);
  if (threadIdx.x % 32 != 0) return;
  const int me = threadIdx.x / 32;
  for (int round = 0; round < 3; ++round) {
    while (whose.load(cuda::std::memory_order_acquire) % (blockDim.x / 32) != me) {
    }
    sum[0] += me;
    whose.store(whose.load(cuda::std::memory_order_relaxed) + 1, cuda::std::memory_order_release);
  }
  while (taken.exchange(1, cuda::std::memory_order_acquire) == 1) {
  }
  sum[1] += me;
  taken.store(0, cuda::std::memory_order_release);
}

int main() {
  auto* data = zeros<int>(64);
  hand_over<<<1, 160>>>(data, data + 8);
  in_turn<<<1, 128>>>(data + 16, data + 17, data + 18);
  int sums[2];
  cudaMemcpy(sums, data + 18, sizeof sums, cudaMemcpyDeviceToHost);
  return sums[0] != 18 || sums[1] != 6;
}
