// 15_many_blocks: 10_block_shapes with up to 128 blocks per row, which exchange their sums through global memory.
//
// It removes the limit of 13_cluster: if there are fewer rows than SMs, every SM gets a part of a row (counters: blocks
// in the grid; DRAM throughput). A block publishes its sum and the number of the launch as one 64-bit word: a thread
// that reads the number has the sum, and cannot mistake a word of an earlier launch for one of this launch. Blocks that
// wait for one another must all be running: the launch is cooperative, which guarantees this or returns an error. The
// exchange costs a trip to L2 and back, so with many rows one block takes a row as before.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/atomic>

#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::many_blocks {

constexpr int kMostThreads = 1024;
constexpr int kVectors = 4;
constexpr int kMostBlocks = 128;  // of a launch whose blocks wait for each other

// All launches share these, so two launches must not run at the same time: not on two streams, not in two branches of a
// graph. A library asks its caller for memory instead. They start as zero, which is no launch's number.
__device__ uint64_t launches;            // kMostBlocks per launch that has ended
__device__ uint64_t words[kMostBlocks];  // number of the launch << 32 | bits of the sum; one per block

using Atomic = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

// In each block of the row, thread `tid` gets the sum of block `tid`, or 0. first: the word of the row's first block.
__device__ inline float exchange(float sum, int first, int part, int parts) {
  constexpr auto relaxed = cuda::memory_order_relaxed;  // each word is complete in itself, so no order is needed
  const unsigned number = static_cast<unsigned>(Atomic(launches).load(relaxed) / kMostBlocks) + 1;
  const int tid = threadIdx.x;
  if (tid == 0) Atomic(words[first + part]).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
  if (tid >= parts) return 0.0f;
  uint64_t word;
  do word = Atomic(words[first + tid]).load(relaxed);
  while (word >> 32 != number);
  return __uint_as_float(static_cast<unsigned>(word));
}

// parts: blocks per row. If it is more than 1, all blocks of the grid run at once, at most kMostBlocks.
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_many_blocks(const float* __restrict__ input, const float* __restrict__ weight,
                                float* __restrict__ output, int64_t cols, float inverse_cols, float eps, int parts) {
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const int part = blockIdx.x % parts, tid = threadIdx.x, threads = blockDim.x;
  const float* row_input = input + blockIdx.x / parts * cols;
  float* row_output = output + blockIdx.x / parts * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  const int64_t begin = vec_cols * part / parts + tid, end = vec_cols * (part + 1) / parts;
  const int64_t rest = begin + int64_t{kVectors} * threads;
  const int64_t scalar = 4 * vec_cols + part * threads + tid, step = parts * threads;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) kept[v] = __ldcs(vec_input + i);
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) kept_weight[v] = weight_at(i);

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
#pragma unroll 4
  for (int64_t i = rest; i < end; i += threads) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = scalar; i < cols; i += step) sum += row_input[i] * row_input[i];
  sum = row_sum(sum, warp_sums[0]);
  if (parts > 1) {
    sum = row_sum(exchange(sum, blockIdx.x - part, part, parts), warp_sums[1]);
    // Add this block's share of kMostBlocks. Every block has read `launches` before any block can get here.
    if (tid == 0) Atomic(launches).fetch_add(blockIdx.x > 0 ? 1 : kMostBlocks + 1 - gridDim.x);
  }
  const float rstd = rsqrtf(sum * inverse_cols + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = begin + v * threads; i < end) __stcs(vec_output + i, scaled(kept[v], rstd, kept_weight[v]));
#pragma unroll 4
  for (int64_t i = rest; i < end; i += threads)
    __stcs(vec_output + i, scaled(__ldcs(vec_input + i), rstd, weight_at(i)));
  for (int64_t i = scalar; i < cols; i += step) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  int device = 0, multiprocessors = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  const int64_t together = std::min(kMostBlocks, multiprocessors);
  const bool shared_rows = 2 * rows <= together && cols >= 8192;  // shorter rows: no gain
  const int parts = shared_rows ? static_cast<int>(together / rows) : 1;
  const int64_t wanted = (cols / 4 / parts + kVectors - 1) / kVectors;
  const int64_t threads = std::clamp<int64_t>(wanted + 127, 128, kMostThreads) / 128 * 128;

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = shared_rows ? 1 : 0;
  config.gridDim = dim3(static_cast<unsigned>(rows * parts));
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_many_blocks, input, weight, output, cols,
                                1.0f / static_cast<float>(cols), eps, parts));
}

inline const Stage<RmsNorm> stage{
    "15_many_blocks", "up to 128 blocks per row, sums through global memory", launch, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::many_blocks
