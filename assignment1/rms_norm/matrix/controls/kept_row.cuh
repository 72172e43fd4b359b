// Between 07_registers, 08_critical_path and 09_streaming: one kernel with a switch for each thing that they change.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/matrix/07_registers/kernel.cuh"
#include "assignment1/rms_norm/matrix/08_critical_path/kernel.cuh"
#include "common/kernel_helpers.cuh"

namespace ladder::matrix::controls {

constexpr int kKeptThreads = 512;
constexpr int kMostKept = 8;  // float4 that a thread keeps

// The switches. Weight first: the weight is loaded before the reduction. Short sum: the sums of the 16 warps are read
// as four float4, not added up by shuffles. No division: a multiplication by 1 / cols. Streaming: 09's __ldcs and
// __stcs. With none of them the kernel is 07, with the first three it is 08. 09 has, besides, a reduction for any block
// size.
struct Of07 {
  static constexpr bool kWeightFirst = false, kShortSum = false, kNoDivision = false, kStreaming = false;
};
struct WeightFirst : Of07 {
  static constexpr bool kWeightFirst = true;
};
struct WeightFirstShortSum : WeightFirst {
  static constexpr bool kShortSum = true;
};
struct Of08 : WeightFirstShortSum {
  static constexpr bool kNoDivision = true;
};
struct StreamingWithSumOf08 : Of08 {
  static constexpr bool kStreaming = true;
};

template <class Of, int kVectors>
__global__ void __launch_bounds__(kKeptThreads)
    rms_norm_kernel_kept_row(const float* __restrict__ input, const float* __restrict__ weight,
                             float* __restrict__ output, int64_t cols, float inverse_cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
  const int64_t rest = kVectors == kMostKept ? kMostKept * kKeptThreads + tid : vec_cols;
  const float4 ones = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
  const auto read_last = [](const float4* from) { return Of::kStreaming ? __ldcs(from) : *from; };
  const auto write = [](float4* to, float4 x) {
    if (Of::kStreaming)
      __stcs(to, x);
    else
      *to = x;
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kKeptThreads + tid;
    if (i < vec_cols) kept[v] = read_last(vec_input + i);
  }
#pragma unroll
  for (int v = 0; Of::kWeightFirst && v < kVectors; ++v) {
    const int i = v * kKeptThreads + tid;
    kept_weight[v] = ones;
    if (weight != nullptr && i < vec_cols) kept_weight[v] = vec_weight[i];
  }
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += kKeptThreads) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kKeptThreads) sum += row_input[i] * row_input[i];

  sum = Of::kShortSum ? critical_path::block_sum(sum) : block_reduce_sum<kKeptThreads>(sum);
  const float rstd = rsqrtf((Of::kNoDivision ? sum * inverse_cols : sum / static_cast<float>(cols)) + eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kKeptThreads + tid;
    if (i >= vec_cols) continue;
    const float4 w = Of::kWeightFirst ? kept_weight[v] : weight == nullptr ? ones : vec_weight[i];
    write(vec_output + i, scaled(kept[v], rstd, w));
  }
  for (int64_t i = rest; i < vec_cols; i += kKeptThreads)
    write(vec_output + i, scaled(read_last(vec_input + i), rstd, weight == nullptr ? ones : vec_weight[i]));
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kKeptThreads) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

template <class Of>
void launch_kept_row(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                     cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  const int64_t vectors = (cols / 4 + kKeptThreads - 1) / kKeptThreads;
  auto* kernel = rms_norm_kernel_kept_row<Of, kMostKept>;
  if (vectors <= 1)
    kernel = rms_norm_kernel_kept_row<Of, 1>;
  else if (vectors <= 2)
    kernel = rms_norm_kernel_kept_row<Of, 2>;
  else if (vectors <= 4)
    kernel = rms_norm_kernel_kept_row<Of, 4>;
  kernel<<<static_cast<unsigned>(rows), kKeptThreads, 0, stream>>>(input, weight, output, cols,
                                                                   1.0f / static_cast<float>(cols), eps);
}

}  // namespace ladder::matrix::controls
