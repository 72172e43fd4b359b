// Ten ways to copy the same bytes, from the worst to the best found. All do the same work, with no arithmetic and no
// reuse, so whatever separates their times is how they ask memory for its bytes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "one_way.cuh"
#include "variant.h"

namespace memory_bandwidth {

constexpr int kChunk = 64;  // floats a thread of 01: its neighbour is 256 bytes away

// 01: every thread has a stretch of its own, as one would share out work on a CPU. The lanes of one load lie in 32
// sectors and use 4 bytes of each 32 (counter: sectors per request, 32 where 4 would do). The other 28 bytes wait in
// the L1 cache for the next seven loads, if they are not evicted first (counter: L1 hit rate).
__global__ void strided_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t count) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kChunk;
  const int64_t last = min(first + kChunk, count);
  for (int64_t i = first; i < last; ++i) to[i] = from[i];
}

// What all the others do: a block copies one tile of kVectors × blockDim.x vectors, lane beside lane. A thread asks for
// all it will read before it writes anything. A tile that is not whole, or not aligned, goes float by float.
template <class V, int kVectors, bool kStreaming>
__device__ void copy_tile(const float* from, float* to, int64_t tile, int64_t count, bool aligned) {
  const int64_t size = static_cast<int64_t>(sizeof(V) / sizeof(float)) * kVectors * blockDim.x;
  const int64_t first = tile * size;
  if (aligned && first + size <= count) {
    const V* source = reinterpret_cast<const V*>(from + first) + threadIdx.x;
    V* target = reinterpret_cast<V*>(to + first) + threadIdx.x;
    V held[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) held[k] = kStreaming ? __ldcs(source + k * blockDim.x) : source[k * blockDim.x];
#pragma unroll
    for (int k = 0; k < kVectors; ++k)
      if (kStreaming)
        __stcs(target + k * blockDim.x, held[k]);
      else
        target[k * blockDim.x] = held[k];
  } else {
    const int64_t last = min(first + size, count);
    for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) to[i] = from[i];
  }
}

// 02 to 05, 07 to 10: as many blocks as there are tiles.
//  02 removes the stride of 01: 4 sectors for the 128 bytes of a request, and every byte is used.
//  03, 04 ask for more at a time: the same bytes take a half, a quarter of the instructions (counter: instructions
//     executed). 08 to 10 are 04 with other block sizes.
//  05 has four times as many bytes in flight a thread, in a quarter of the threads.
//  07 is 04 with the hint that no byte will be used again, so that caches evict it first.
template <class V, int kVectors, bool kStreaming>
__global__ void copy_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t count, bool aligned) {
  copy_tile<V, kVectors, kStreaming>(from, to, blockIdx.x, count, aligned);
}

// 06: only as many blocks as the GPU holds at once; each takes tile after tile. It differs from 05 in this alone.
template <int kVectors>
__global__ void persistent_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t count, bool aligned,
                                  int64_t tiles) {
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    copy_tile<float4, kVectors, false>(from, to, tile, count, aligned);
}

template <int kThreads>
void launch_strided(const float* from, float* to, int64_t count, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(count, kChunk * kThreads));
  if (blocks > 0) strided_kernel<<<blocks, kThreads, 0, stream>>>(from, to, count);
}

template <class V, int kVectors, int kThreads, bool kStreaming>
void launch_copy(const float* from, float* to, int64_t count, cudaStream_t stream) {
  constexpr int64_t kTile = static_cast<int64_t>(sizeof(V) / sizeof(float)) * kVectors * kThreads;
  const auto blocks = static_cast<unsigned>(blocks_for(count, kTile));
  const bool aligned = aligned_for<V>(from, to);
  if (blocks > 0) copy_kernel<V, kVectors, kStreaming><<<blocks, kThreads, 0, stream>>>(from, to, count, aligned);
}

template <int kVectors, int kThreads>
void launch_persistent(const float* from, float* to, int64_t count, cudaStream_t stream) {
  static const int64_t most = resident_blocks(persistent_kernel<kVectors>, kThreads);
  const int64_t tiles = blocks_for(count, 4 * kVectors * kThreads);
  const auto blocks = static_cast<unsigned>(std::min(tiles, most));
  const bool aligned = aligned_for<float4>(from, to);
  if (blocks > 0) persistent_kernel<kVectors><<<blocks, kThreads, 0, stream>>>(from, to, count, aligned, tiles);
}

inline void launch_memcpy(const float* from, float* to, int64_t count, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(to, from, count * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

constexpr bool kPlain = false, kStreaming = true;

inline const std::vector<Variant> variants = {
    {"01_strided", "64 floats in a row for each thread", Moves::copy, 256, 4, 4 * kChunk, launch_strided<256>},
    {"02_float", "lane beside lane, 4 bytes each", Moves::copy, 256, 4, 4, launch_copy<float, 1, 256, kPlain>},
    {"03_float2", "8 bytes each", Moves::copy, 256, 8, 8, launch_copy<float2, 1, 256, kPlain>},
    {"04_float4", "16 bytes each", Moves::copy, 256, 16, 16, launch_copy<float4, 1, 256, kPlain>},
    {"05_float4_x4", "four times 16 bytes each, all read first", Moves::copy, 256, 16, 16,
     launch_copy<float4, 4, 256, kPlain>},
    {"06_persistent", "05 in a grid that stays resident", Moves::copy, 256, 16, 16, launch_persistent<4, 256>},
    {"07_streaming", "04 with __ldcs and __stcs", Moves::copy, 256, 16, 16, launch_copy<float4, 1, 256, kStreaming>},
    {"08_block_128", "04 in blocks of 128", Moves::copy, 128, 16, 16, launch_copy<float4, 1, 128, kPlain>},
    {"09_block_512", "04 in blocks of 512", Moves::copy, 512, 16, 16, launch_copy<float4, 1, 512, kPlain>},
    {"10_block_1024", "04 in blocks of 1024", Moves::copy, 1024, 16, 16, launch_copy<float4, 1, 1024, kPlain>},
    {"11_read_only", "resident grid, sums what it reads", Moves::read, 256, 16, 16, launch_read<4, 256>},
    {"12_write_only", "16 bytes each", Moves::write, 256, 16, 16, launch_write<256>},
    {"13_memcpy", "cudaMemcpyAsync, device to device", Moves::copy, 0, 0, 0, launch_memcpy},
};

}  // namespace memory_bandwidth
