// Ten kernels that copy the same bytes, from the worst to the best found, and two that do half of it. There is no
// arithmetic and no reuse, so whatever separates their times is how they ask memory for its bytes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/launch.h"
#include "common/operators/copy.h"

namespace ladder::memory_bandwidth {

constexpr int kThreads = 256;  // per block; 08 to 10 have other numbers
constexpr int kChunk = 64;     // floats per thread of 01: neighbouring threads are 256 bytes apart
constexpr int kVectors = 4;    // per thread and step of 05, 06 and 11

// 01: every thread has a stretch of its own, as one would share out work on a CPU. The lanes of one load touch 32
// sectors and use 4 bytes of each 32 (counter: sectors per request, 32 where 4 would do). The other 28 bytes stay in
// the L1 cache for the next seven loads, if they are not evicted first (counter: L1 hit rate).
__global__ void strided_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n) {
  const int64_t first = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kChunk;
  const int64_t last = min(first + kChunk, n);
  for (int64_t i = first; i < last; ++i) to[i] = from[i];
}

// All the others use this: a block copies one tile of kHeld × blockDim.x vectors, lanes side by side. A thread issues
// all its loads before it writes anything. An incomplete or unaligned tile is copied float by float.
template <class V, int kHeld, bool kStreaming>
__device__ void copy_tile(const float* from, float* to, int64_t tile, int64_t n, bool aligned) {
  const int64_t size = static_cast<int64_t>(sizeof(V) / sizeof(float)) * kHeld * blockDim.x;
  const int64_t first = tile * size;
  if (aligned && first + size <= n) {
    const V* source = reinterpret_cast<const V*>(from + first) + threadIdx.x;
    V* target = reinterpret_cast<V*>(to + first) + threadIdx.x;
    V held[kHeld];
#pragma unroll
    for (int k = 0; k < kHeld; ++k) held[k] = kStreaming ? __ldcs(source + k * blockDim.x) : source[k * blockDim.x];
#pragma unroll
    for (int k = 0; k < kHeld; ++k)
      if (kStreaming)
        __stcs(target + k * blockDim.x, held[k]);
      else
        target[k * blockDim.x] = held[k];
  } else {
    const int64_t last = min(first + size, n);
    for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) to[i] = from[i];
  }
}

// 02 to 05, 07 to 10: as many blocks as there are tiles.
//  02 removes the stride of 01: 4 sectors for the 128 bytes of a request, and every byte is used.
//  03, 04 ask for more at a time: the same bytes take a half, a quarter of the instructions (counter: instructions
//     executed). 08 to 10 are 04 with other block sizes.
//  05 has four times as many bytes in flight per thread, in a quarter of the threads.
//  07 is 04 with the hint that no byte will be used again, so that the caches evict it first.
template <class V, int kHeld, bool kStreaming>
__global__ void copy_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned) {
  copy_tile<V, kHeld, kStreaming>(from, to, blockIdx.x, n, aligned);
}

// 06: only as many blocks as the GPU holds at once; each copies tile after tile. This is the only difference from 05.
__global__ void persistent_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned,
                                  int64_t tiles) {
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
    copy_tile<float4, kVectors, false>(from, to, tile, n, aligned);
}

// 11: each block writes the sum of the words it read, because the compiler removes reads whose values are not used.
__global__ void read_kernel(const float* __restrict__ from, float* __restrict__ sums, int64_t n, bool aligned) {
  const int64_t size = int64_t{4} * kVectors * blockDim.x;
  uint32_t sum = 0;
  for (int64_t first = blockIdx.x * size; first < n; first += gridDim.x * size) {
    if (aligned && first + size <= n) {
      const uint4* source = reinterpret_cast<const uint4*>(from + first) + threadIdx.x;
      uint4 held[kVectors];
#pragma unroll
      for (int k = 0; k < kVectors; ++k) held[k] = source[k * blockDim.x];
#pragma unroll
      for (int k = 0; k < kVectors; ++k) sum += held[k].x + held[k].y + held[k].z + held[k].w;
    } else {
      const int64_t last = min(first + size, n);
      for (int64_t i = first + threadIdx.x; i < last; i += blockDim.x) sum += __float_as_uint(from[i]);
    }
  }

  __shared__ uint32_t block_sum;
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  atomicAdd(&block_sum, sum);
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = __uint_as_float(block_sum);
}

__device__ inline uint32_t pattern(int64_t i) { return static_cast<uint32_t>(i) * Copy::kPatternStep; }

// 12: each word is computed from its place, so that the checker detects one in the wrong place.
__global__ void write_kernel(float* __restrict__ to, int64_t n, bool aligned) {
  const int64_t i = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * 4;
  if (aligned && i + 4 <= n)
    *reinterpret_cast<uint4*>(to + i) = make_uint4(pattern(i), pattern(i + 1), pattern(i + 2), pattern(i + 3));
  else
    for (int64_t k = i; k < min(i + 4, n); ++k) to[k] = __uint_as_float(pattern(k));
}

inline void launch_strided(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kChunk * kThreads));
  if (blocks > 0) strided_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n);
}

template <class V, int kHeld = 1, int kBlock = kThreads, bool kStreaming = false>
void launch_copy(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, int64_t{sizeof(V) / sizeof(float)} * kHeld * kBlock));
  const bool aligned = aligned_for<V>(from, to);
  if (blocks > 0) copy_kernel<V, kHeld, kStreaming><<<blocks, kBlock, 0, stream>>>(from, to, n, aligned);
}

inline void launch_persistent(const float* from, float* to, int64_t n, cudaStream_t stream) {
  static const int64_t most = resident_blocks(persistent_kernel, kThreads);
  const int64_t tiles = blocks_for(n, 4 * kVectors * kThreads);
  const auto blocks = static_cast<unsigned>(std::min(tiles, most));
  const bool aligned = aligned_for<float4>(from, to);
  if (blocks > 0) persistent_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned, tiles);
}

inline void launch_read(const float* from, float* to, int64_t n, cudaStream_t stream) {
  static const int64_t most = resident_blocks(read_kernel, kThreads);
  const auto blocks = static_cast<unsigned>(std::min(blocks_for(n, 4 * kVectors * kThreads), most));
  if (blocks > 0) read_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned_for<float4>(from, from));
}

inline void launch_write(const float*, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kThreads));
  if (blocks > 0) write_kernel<<<blocks, kThreads, 0, stream>>>(to, n, aligned_for<float4>(to, to));
}

inline void launch_memcpy(const float* from, float* to, int64_t n, cudaStream_t stream) {
  CUDA_CHECK(cudaMemcpyAsync(to, from, n * sizeof(float), cudaMemcpyDeviceToDevice, stream));
}

inline const std::vector<AnyStage> stages = {
    Stage<Copy>{"01_strided", "64 consecutive floats for each thread", launch_strided},
    Stage<Copy>{"02_float", "lane beside lane, 4 bytes each", launch_copy<float>},
    Stage<Copy>{"03_float2", "8 bytes each", launch_copy<float2>},
    Stage<Copy>{"04_float4", "16 bytes each", launch_copy<float4>},
    Stage<Copy>{"05_float4_x4", "four times 16 bytes each, all read first", launch_copy<float4, kVectors>},
    Stage<Copy>{"06_persistent", "05 with as many blocks as run at once", launch_persistent},
    Stage<Copy>{"07_streaming", "04 with __ldcs and __stcs", launch_copy<float4, 1, kThreads, true>},
    Stage<Copy>{"08_block_128", "04 in blocks of 128", launch_copy<float4, 1, 128>},
    Stage<Copy>{"09_block_512", "04 in blocks of 512", launch_copy<float4, 1, 512>},
    Stage<Copy>{"10_block_1024", "04 in blocks of 1024", launch_copy<float4, 1, 1024>},
    Stage<Read>{"11_read_only", "resident grid, sums what it reads", launch_read},
    Stage<Write>{"12_write_only", "16 bytes each", launch_write},
    Stage<Copy>{"13_memcpy", "cudaMemcpyAsync, device to device", launch_memcpy},
};

}  // namespace ladder::memory_bandwidth
