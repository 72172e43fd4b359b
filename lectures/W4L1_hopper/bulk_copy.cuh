// One thread asks for a whole tile, and a barrier in shared memory (an mbarrier) counts the bytes that arrive. 04 and
// 05 are the same work: a block for each SM copies tile after tile.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/barrier>

#include "common/launch.h"
#include "common/operators/copy.h"

namespace ladder::hopper {

constexpr int kTile = 2048;   // floats, 8 KB
constexpr int kBuffers = 4;   // tiles of 05 in shared memory
constexpr int kThreads = 64;  // per block, unless an experiment says otherwise

// The tiles of a block are blockIdx.x, blockIdx.x + gridDim.x, ... The last tile of all may be shorter.
__device__ inline void copy_by_element(const float* from, float* to, int64_t begin, int64_t end) {
  for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) to[i] = from[i];
}

// 04: what is on its way has a register waiting for it. A thread asks for two vectors at a time, so a small block has
// few bytes in flight: 32 for each thread.
__global__ void by_threads_kernel(const float* from, float* to, int64_t n, bool aligned) {
  for (int64_t begin = int64_t{blockIdx.x} * kTile; begin < n; begin += int64_t{gridDim.x} * kTile) {
    if (!aligned || begin + kTile > n) {
      copy_by_element(from, to, begin, min(begin + kTile, n));
      continue;
    }
    const auto* source = reinterpret_cast<const float4*>(from + begin);
    auto* target = reinterpret_cast<float4*>(to + begin);
    for (unsigned i = threadIdx.x; i < kTile / 4; i += 2 * blockDim.x) {
      const unsigned next = i + blockDim.x;
      const float4 first = source[i], second = next < kTile / 4 ? source[next] : first;
      target[i] = first;
      if (next < kTile / 4) target[next] = second;
    }
  }
}

// 05: the bytes in flight are those of the buffers, whatever the number of threads (counters: DRAM throughput;
// registers). It costs shared memory, a trip through it, and alignment to 16 bytes.
__global__ void bulk_copy_kernel(const float* from, float* to, int64_t n, bool aligned) {
  const int64_t whole = aligned ? n / kTile : 0;  // tiles that come in bulk
#if __CUDA_ARCH__ >= 900
  using Barrier = cuda::barrier<cuda::thread_scope_block>;
  __shared__ alignas(128) float4 buffers[kBuffers][kTile / 4];
  __shared__ uint64_t barriers[kBuffers];
  static_assert(sizeof(Barrier) == sizeof(uint64_t), "an mbarrier has 64 bits");
  auto* arrived = reinterpret_cast<Barrier*>(barriers);

  if (threadIdx.x == 0) {
    for (int i = 0; i < kBuffers; ++i) init(&arrived[i], 1);     // one thread arrives: the one that asks
    cuda::device::experimental::fence_proxy_async_shared_cta();  // the copy engine sees the initialized barriers
  }
  __syncthreads();
  const auto fetch = [&](int64_t tile, int buffer) {  // once all bytes are there, the barrier's phase ends
    if (threadIdx.x != 0 || tile >= whole) return;
    const auto* source = reinterpret_cast<const float4*>(from + tile * kTile);
    constexpr int kBytes = kTile * static_cast<int>(sizeof(float));
    cuda::device::memcpy_async_tx(buffers[buffer], source, cuda::aligned_size_t<16>(kBytes), arrived[buffer]);
    static_cast<void>(cuda::device::barrier_arrive_tx(arrived[buffer], 1, kBytes));
  };
  for (int buffer = 0; buffer < kBuffers; ++buffer) fetch(blockIdx.x + int64_t{buffer} * gridDim.x, buffer);

  int buffer = 0;
  bool parity = false;  // of the phase that ends when the tile is there
  for (int64_t tile = blockIdx.x; tile < whole; tile += gridDim.x) {
    arrived[buffer].wait_parity(parity);
    auto* target = reinterpret_cast<float4*>(to + tile * kTile);
    for (unsigned i = threadIdx.x; i < kTile / 4; i += blockDim.x) target[i] = buffers[buffer][i];
    __syncthreads();  // no thread still reads the buffer
    fetch(tile + int64_t{kBuffers} * gridDim.x, buffer);
    if (++buffer == kBuffers) buffer = 0, parity = !parity;
  }
#endif
  for (int64_t begin = (whole + blockIdx.x) * kTile; begin < n; begin += int64_t{gridDim.x} * kTile)
    copy_by_element(from, to, begin, min(begin + kTile, n));
}

// One block for each SM, whatever would fit.
template <bool kBulk, int kBlock>
void launch_tiles(const float* from, float* to, int64_t n, cudaStream_t stream) {
  static const int64_t most = multiprocessors();
  const auto blocks = static_cast<unsigned>(std::min(blocks_for(n, kTile), most));
  auto* kernel = kBulk ? bulk_copy_kernel : by_threads_kernel;
  if (blocks > 0) kernel<<<blocks, kBlock, 0, stream>>>(from, to, n, aligned_for<float4>(from, to));
}

}  // namespace ladder::hopper
