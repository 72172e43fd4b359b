// Half a copy each: a kernel that only reads and one that only writes. Memory serves one kind of request faster than a
// mix of both, so neither of the two is a ceiling for a kernel that does both.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "variant.h"

namespace memory_bandwidth {

// 11: each block leaves the sum of the words it read, because reads whose values nobody needs are optimised away.
template <int kVectors>
__global__ void read_kernel(const float* __restrict__ from, float* __restrict__ sums, int64_t count, bool aligned) {
  const int64_t size = static_cast<int64_t>(4) * kVectors * blockDim.x;
  uint32_t sum = 0;
  for (int64_t first = blockIdx.x * size; first < count; first += gridDim.x * size) {
    if (aligned && first + size <= count) {
      const uint4* source = reinterpret_cast<const uint4*>(from + first) + threadIdx.x;
      uint4 held[kVectors];
#pragma unroll
      for (int k = 0; k < kVectors; ++k) held[k] = source[k * blockDim.x];
#pragma unroll
      for (int k = 0; k < kVectors; ++k) sum += held[k].x + held[k].y + held[k].z + held[k].w;
    } else {
      const int64_t last = min(first + size, count);
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

__device__ inline uint32_t pattern(int64_t i) { return static_cast<uint32_t>(i) * kPatternStep; }

// 12: each word is computed from its place, so that one in the wrong place is noticed.
__global__ void write_kernel(float* __restrict__ to, int64_t count, bool aligned) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
  if (aligned && first + 4 <= count) {
    *reinterpret_cast<uint4*>(to + first) =
        make_uint4(pattern(first), pattern(first + 1), pattern(first + 2), pattern(first + 3));
  } else {
    const int64_t last = min(first + 4, count);
    for (int64_t i = first; i < last; ++i) to[i] = __uint_as_float(pattern(i));
  }
}

template <int kVectors, int kThreads>
void launch_read(const float* from, float* to, int64_t count, cudaStream_t stream) {
  static const int64_t most = resident_blocks(read_kernel<kVectors>, kThreads);
  const auto blocks = static_cast<unsigned>(std::min(blocks_for(count, 4 * kVectors * kThreads), most));
  const bool aligned = aligned_for<float4>(from, from);
  if (blocks > 0) read_kernel<kVectors><<<blocks, kThreads, 0, stream>>>(from, to, count, aligned);
}

template <int kThreads>
void launch_write(const float*, float* to, int64_t count, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(count, 4 * kThreads));
  const bool aligned = aligned_for<float4>(to, to);
  if (blocks > 0) write_kernel<<<blocks, kThreads, 0, stream>>>(to, count, aligned);
}

}  // namespace memory_bandwidth
