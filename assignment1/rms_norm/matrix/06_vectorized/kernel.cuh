// 06_vectorized: 05_warp_shuffle with 128-bit loads and stores, of input, weight and output.
//
// It makes two changes. One instruction moves 16 bytes per lane, so a row takes a quarter of the load and store
// instructions (counter: global load requests; sectors per request rise to 16, all used). And a block has 512 threads.
// It leaves: the row is read twice, and a cache has to serve the second read (counters: L1 and L2 hit rates, and DRAM
// bytes read once the caches cannot hold the rows). Keeping the row in registers is the next idea.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::vectorized {

template <int kBlockSize>
__global__ void rms_norm_kernel_optimized(const float* __restrict__ input, const float* __restrict__ weight,
                                          float* __restrict__ output, int64_t cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;

  float sum = 0.0f;
#pragma unroll 4
  for (int64_t i = tid; i < vec_cols; i += kBlockSize) {
    const float4 x = vec_input[i];
    sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
  }
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];

  const float rstd = rsqrtf(block_reduce_sum<kBlockSize>(sum) / static_cast<float>(cols) + eps);
#pragma unroll 4
  for (int64_t i = tid; i < vec_cols; i += kBlockSize) {
    const float4 x = vec_input[i];
    const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
    vec_output[i] = make_float4(x.x * rstd * w.x, x.y * rstd * w.y, x.z * rstd * w.z, x.w * rstd * w.w);
  }
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

template <int kBlockSize>
void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
            cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  rms_norm_kernel_optimized<kBlockSize>
      <<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols, eps);
}

// 512 threads per block, twice as many as in 02, 04 and 05. With 40 registers per thread 1536 threads fit on an SM
// either way, but in half as many blocks, so fewer rows (3 × 32 KiB at 8192 columns) pass through the caches between
// the two reads of one. ../controls/ has this kernel with 256 threads, and 05's with 512.
inline const Stage<RmsNorm> stage{
    "06_vectorized", "warp shuffles, 128-bit accesses", launch<512>, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::vectorized
