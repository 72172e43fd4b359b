// Reading alone: the words of the input are added up as integers, which no rounding orders, and every block leaves its
// sum where it is. A sum of floats has these bytes to read, and more to do.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/copy.h"

namespace ladder::reduction::controls {

template <int kThreads, int kVectors>
__global__ void __launch_bounds__(kThreads)
    read_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned) {
  constexpr int64_t kTile = int64_t{4} * kThreads * kVectors;
  const int tid = threadIdx.x;
  uint32_t sum = 0;
  int64_t first = blockIdx.x * kTile;
  for (; aligned && first + kTile <= n; first += gridDim.x * kTile) {
    const auto* vectors = reinterpret_cast<const uint4*>(from + first) + tid;
    uint4 x[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) x[k] = vectors[k * kThreads];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sum += x[k].x + x[k].y + x[k].z + x[k].w;
  }
  for (; first < n; first += gridDim.x * kTile)
    for (int64_t i = first + tid; i < min(first + kTile, n); i += kThreads) sum += __float_as_uint(from[i]);

  __shared__ uint32_t block_sum;
  if (tid == 0) block_sum = 0;
  __syncthreads();
  atomicAdd(&block_sum, sum);
  __syncthreads();
  if (tid == 0) to[blockIdx.x] = __uint_as_float(block_sum);
}

// kWaves: as for reduction8.
template <int kThreads, int kVectors, int kWaves>
void launch_read(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto kernel = read_kernel<kThreads, kVectors>;
  static const int64_t resident = resident_blocks(kernel, kThreads);
  const int64_t tiles = blocks_for(n, int64_t{4} * kThreads * kVectors);
  const auto blocks = static_cast<unsigned>(std::min(tiles, kWaves > 0 ? kWaves * resident : INT64_MAX));
  if (blocks > 0) kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned_for<uint4>(from, from));
}

}  // namespace ladder::reduction::controls
