// Beside 07_registers, 08_critical_path, 09_streaming, 14_dependent_launch and 16_held_reads: one kernel, and a struct
// for each combination of what they change.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/annotated_ptr>

#include "assignment1/rms_norm/matrix/07_registers/kernel.cuh"
#include "assignment1/rms_norm/matrix/08_critical_path/kernel.cuh"
#include "assignment1/rms_norm/matrix/14_dependent_launch/kernel.cuh"
#include "assignment1/rms_norm/matrix/16_held_reads/kernel.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"

namespace ladder::matrix::controls {

constexpr int kKeptThreads = 512;
constexpr int kMostKept = 8;  // float4 that a thread keeps

enum class Weight { after_sum, after_row, before_row };  // when it is loaded

struct Of07 {
  static constexpr Weight kWeight = Weight::after_sum;
  static constexpr bool kNoDivision = false;              // a multiplication by 1 / cols instead
  static constexpr bool kWait = false, kTrigger = false;  // 14's two calls
  static __device__ float sum(float value) { return block_reduce_sum<kKeptThreads>(value); }
  static __device__ float4 read(const float4* from) { return *from; }
  static __device__ float4 read_weight(const float4* from) { return *from; }
  static __device__ void write(float4* to, float4 x) { *to = x; }
};

// From 07 to 09, one change after the other.
struct WeightFirst : Of07 {
  static constexpr Weight kWeight = Weight::after_row;
};
struct WeightFirstShortSum : WeightFirst {
  static __device__ float sum(float value) { return critical_path::block_sum(value); }
};
struct Of08 : WeightFirstShortSum {
  static constexpr bool kNoDivision = true;
};
struct StreamingWithSumOf08 : Of08 {
  static __device__ float4 read(const float4* from) { return __ldcs(from); }
  static __device__ void write(float4* to, float4 x) { __stcs(to, x); }
};
struct Of09 : StreamingWithSumOf08 {
  static __device__ float sum(float value) {
    __shared__ alignas(16) float warp_sums[32];
    return row_sum(value, warp_sums);
  }
};

// 08, 09 and 16 with the weight at another place or another hint.
struct WeightBeforeRow : Of08 {
  static constexpr Weight kWeight = Weight::before_row;
};
struct StreamedWeight : Of09 {
  static __device__ float4 read_weight(const float4* from) { return __ldcs(from); }
};
struct ThroughL2 : Of09 {
  static __device__ float4 read(const float4* from) { return __ldcg(from); }
};
struct LastUse : Of09 {
  static __device__ float4 read(const float4* from) { return __ldlu(from); }
};
struct NotCached : Of09 {
  static __device__ float4 read(const float4* from) { return __ldcv(from); }
};
struct HeldReadsAlone : Of09 {
  static __device__ float4 read(const float4* from) { return held_reads::load_held(from); }
  static __device__ void write(float4* to, float4 x) { *to = x; }
};
struct HeldWrites : Of09 {
  static __device__ void write(float4* to, float4 x) {
    *cuda::associate_access_property(to, cuda::access_property::persisting()) = x;
  }
};

// 14, with 09's blocks.
struct DependentLaunch : Of09 {
  static constexpr Weight kWeight = Weight::before_row;
  static constexpr bool kWait = true, kTrigger = true;
};
struct WithoutTrigger : DependentLaunch {
  static constexpr bool kTrigger = false;
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
  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
  const auto keep_weight = [&] {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      const int i = v * kKeptThreads + tid;
      kept_weight[v] = ones;
      if (weight != nullptr && i < vec_cols) kept_weight[v] = Of::read_weight(vec_weight + i);
    }
  };
  if (Of::kWeight == Weight::before_row) keep_weight();
  if (Of::kWait) dependent_launch::wait_for_previous_kernel();
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kKeptThreads + tid;
    if (i < vec_cols) kept[v] = Of::read(vec_input + i);
  }
  if (Of::kWeight == Weight::after_row) keep_weight();
  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
  for (int64_t i = rest; i < vec_cols; i += kKeptThreads) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = 4 * vec_cols + tid; i < cols; i += kKeptThreads) sum += row_input[i] * row_input[i];

  sum = Of::sum(sum);
  if (Of::kTrigger) dependent_launch::let_next_kernel_start();
  const float rstd = rsqrtf((Of::kNoDivision ? sum * inverse_cols : sum / static_cast<float>(cols)) + eps);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const int i = v * kKeptThreads + tid;
    if (i >= vec_cols) continue;
    const float4 w = Of::kWeight != Weight::after_sum ? kept_weight[v] : weight == nullptr ? ones : vec_weight[i];
    Of::write(vec_output + i, scaled(kept[v], rstd, w));
  }
  for (int64_t i = rest; i < vec_cols; i += kKeptThreads)
    Of::write(vec_output + i, scaled(Of::read(vec_input + i), rstd, weight == nullptr ? ones : vec_weight[i]));
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
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(rows));
  config.blockDim = dim3(kKeptThreads);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = Of::kWait ? 1 : 0;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, input, weight, output, cols, 1.0f / static_cast<float>(cols), eps));
}

}  // namespace ladder::matrix::controls
