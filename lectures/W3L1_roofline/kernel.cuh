// One kernel for each ceiling of the roofline: it keeps one unit of the GPU busy and every other one idle, and what it
// computes is checked, so that no ceiling is that of a kernel which does less than it claims.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "common/launch.h"
#include "common/operators/copy.h"
#include "common/operators/repeated.h"
#include "products.cuh"

namespace ladder::roofline {

constexpr int kThreads = 256;                                           // per block
constexpr int kTile = RepeatedRead::kTile;                              // words that a block of 01, 03, 04 reads
constexpr int kVectors = kTile / 4 / kThreads;                          // of 16 bytes, per thread
constexpr int64_t kWindow = int64_t{16} * 1024 * 1024 / sizeof(float);  // words that stay in the L2 cache
constexpr int kChains = 8;                                              // per thread of 05
constexpr const char* kManyRepeats =
    "01 and 03 have a block for each repeat in the grid's second dimension, at most 65535 blocks; give fewer repeats";

inline const char* too_many_repeats(const Shape& shape) { return shape[1] > 65535 ? kManyRepeats : nullptr; }

// Thread 0 stores the sum of the block's words, modulo 2^32.
__device__ inline void store_sum(uint32_t sum, float* to) {
  __shared__ uint32_t warp_sums[kThreads / 32];
#if __CUDA_ARCH__ >= 800
  sum = __reduce_add_sync(0xffffffffu, sum);
#endif
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int warp = 1; warp < kThreads / 32; ++warp) sum += warp_sums[warp];
  *to = __uint_as_float(sum);
}

__device__ inline uint32_t added(uint4 v) { return v.x + v.y + v.z + v.w; }

// 01 and 03: block (x, y) reads tile x for the y-th time. Blocks start in the order of x, then y, so all n words have
// been read once before any is read again, from wherever that many words fit. The loads pass the L1 cache by (__ldcg).
__global__ void read_kernel(const float* __restrict__ from, float* __restrict__ sums, int64_t n, bool aligned) {
  const int64_t first = int64_t{blockIdx.x} * kTile;
  uint32_t sum = 0;
  if (aligned && first + kTile <= n) {
    const uint4* source = reinterpret_cast<const uint4*>(from + first) + threadIdx.x;
    uint4 held[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) held[k] = __ldcg(source + k * kThreads);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sum += added(held[k]);
  } else {
    const int64_t last = min(first + kTile, n);
    for (int64_t i = first + threadIdx.x; i < last; i += kThreads) sum += __float_as_uint(__ldcg(from + i));
  }
  store_sum(sum, sums + int64_t{blockIdx.y} * gridDim.x + blockIdx.x);
}

// 02: 16 bytes per thread, as the course's copy kernel.
__global__ void copy_kernel(const float* __restrict__ from, float* __restrict__ to, int64_t n, bool aligned) {
  const int64_t i = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  if (aligned && i + 4 <= n)
    *reinterpret_cast<float4*>(to + i) = *reinterpret_cast<const float4*>(from + i);
  else
    for (int64_t k = i; k < min(i + 4, n); ++k) to[k] = from[k];
}

// 04: a block brings one tile into shared memory and reads it from there again and again, 16 bytes per lane and lane
// beside lane, so without a bank conflict. The turn moves every thread on by one vector: a load from the same address
// as before would be dropped by the compiler.
__global__ void shared_kernel(const float* __restrict__ from, float* __restrict__ sums, int64_t n, int repeats) {
  __shared__ uint4 tile[kTile / 4];
  const int64_t first = int64_t{blockIdx.x} * kTile;
  for (int i = threadIdx.x; i < kTile; i += kThreads)
    reinterpret_cast<uint32_t*>(tile)[i] = first + i < n ? __float_as_uint(from[first + i]) : 0;
  __syncthreads();

  uint32_t sum = 0;
#pragma unroll 4
  for (int turn = 0; turn < repeats; ++turn) {
    const uint4* mine = tile + (threadIdx.x + turn) % kThreads;
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sum += added(mine[k * kThreads]);
  }
  store_sum(sum, sums + blockIdx.x);
}

// 05: a multiply-add needs the result of the one before, and a scheduler may issue one each cycle. Eight elements per
// thread are eight independent sequences, so that no cycle waits for a result (counter: issue slots busy).
__global__ void fma_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t n, int repeats) {
  const int64_t first = int64_t{blockIdx.x} * kChains * kThreads + threadIdx.x;
  float x[kChains];
#pragma unroll
  for (int k = 0; k < kChains; ++k) x[k] = first + k * kThreads < n ? input[first + k * kThreads] : 0.0f;
#pragma unroll 16
  for (int turn = 0; turn < repeats; ++turn) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) x[k] = fmaf(x[k], x[k], RepeatedFma::kShift);
  }
#pragma unroll
  for (int k = 0; k < kChains; ++k)
    if (first + k * kThreads < n) output[first + k * kThreads] = x[k];
}

// Window after window, each `repeats` times: 01 has one window, which no cache holds, 03 has windows that L2 holds.
inline void launch_windows(const float* from, float* to, int64_t n, int64_t repeats, int64_t window,
                           cudaStream_t stream) {
  const bool aligned = aligned_for<uint4>(from, from);
  for (int64_t first = 0; first < n; first += window) {
    const int64_t words = std::min(window, n - first);
    const dim3 grid(static_cast<unsigned>(blocks_for(words, kTile)), static_cast<unsigned>(repeats));
    read_kernel<<<grid, kThreads, 0, stream>>>(from + first, to, words, aligned);
    to += int64_t{grid.x} * grid.y;
  }
}

inline void launch_dram_read(const float* from, float* to, int64_t n, int64_t repeats, cudaStream_t stream) {
  launch_windows(from, to, n, repeats, std::max<int64_t>(n, 1), stream);
}

inline void launch_l2_read(const float* from, float* to, int64_t n, int64_t repeats, cudaStream_t stream) {
  launch_windows(from, to, n, repeats, kWindow, stream);
}

inline void launch_dram_copy(const float* from, float* to, int64_t n, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, 4 * kThreads));
  if (blocks > 0) copy_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, aligned_for<float4>(from, to));
}

inline void launch_shared(const float* from, float* to, int64_t n, int64_t repeats, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kTile));
  if (blocks > 0) shared_kernel<<<blocks, kThreads, 0, stream>>>(from, to, n, static_cast<int>(repeats));
}

inline void launch_fma(const float* input, float* output, int64_t n, int64_t repeats, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, kChains * kThreads));
  if (blocks > 0) fma_kernel<<<blocks, kThreads, 0, stream>>>(input, output, n, static_cast<int>(repeats));
}

// A grid of n / 4096 blocks is small enough for every n that fits into memory, and an int for every number of repeats.
inline const std::vector<AnyStage> stages = {
    Stage<RepeatedRead>{
        "01_dram_read", "everything from memory, again and again", launch_dram_read, {80, too_many_repeats}},
    Stage<Copy>{"02_dram_copy", "16 bytes per thread, once", launch_dram_copy},
    Stage<RepeatedRead>{
        "03_l2_read", "16 MiB from the L2 cache, again and again", launch_l2_read, {80, too_many_repeats}},
    Stage<RepeatedRead>{
        "04_shared_read", "16 KiB from shared memory, again and again", launch_shared, {80, too_many_repeats}},
    Stage<RepeatedFma>{
        "05_float32_fma", "eight chains of multiply-adds per thread", launch_fma, {80, too_many_repeats}},
    Stage<HalfProducts>{
        "06_half_mma", "tensor cores, one warp's instruction", launch_mma<half_t>, {80, Products::rounds}},
    Stage<HalfProducts>{
        "07_half_wgmma", "tensor cores, a warpgroup's instruction", launch_wgmma<half_t>, {90, without_wgmma}},
    Stage<Int8Products>{"08_int8_mma", "06 with 8-bit whole numbers", launch_mma<int8_t>, {80, Products::rounds}},
    Stage<Int8Products>{"09_int8_wgmma", "07 with 8-bit whole numbers", launch_wgmma<int8_t>, {90, without_wgmma}},
};

}  // namespace ladder::roofline
