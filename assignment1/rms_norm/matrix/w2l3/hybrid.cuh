// 04_hybrid's kernel with other numbers of float4 per thread, and without its test of each row's alignment.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/matrix/04_hybrid/kernel.cuh"

namespace ladder::matrix::w2l3 {

// kAligned: the caller knows that every row begins at a multiple of 16 bytes and consists of whole vectors.
template <int kVectors, bool kAligned>
__global__ void rms_norm_kernel_hybrid_variant(const float* __restrict__ input, const float* __restrict__ weight,
                                               float* __restrict__ output, int64_t cols, float eps) {
  constexpr int kBlockSize = hybrid::kBlockSize;
  __shared__ float sdata[kBlockSize + 1];
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;
  const auto* vec_input = reinterpret_cast<const float4*>(row_input);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight);
  auto* vec_output = reinterpret_cast<float4*>(row_output);
  const int64_t vec_cols = kAligned || hybrid::aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;

  float sum = 0.0f;
  for (int64_t chunk = 0; chunk < vec_cols; chunk += kBlockSize * kVectors) {
#pragma unroll 4
    for (int j = 0; j < kVectors; ++j) {
      const int64_t i = chunk + j * kBlockSize + tid;
      if (i < vec_cols) {
        const float4 x = vec_input[i];
        sum += x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
      }
    }
  }
  if constexpr (!kAligned)
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];
  sdata[tid] = sum;
  __syncthreads();
  if (tid < 128) sdata[tid] += sdata[tid + 128];
  __syncthreads();
  if (tid < 64) sdata[tid] += sdata[tid + 64];
  __syncthreads();
  if (tid < 32) {
#pragma unroll
    for (int s = 32; s > 0; s /= 2) {
      const float pair = sdata[tid] + sdata[tid + s];
      __syncwarp();
      sdata[tid] = pair;
      __syncwarp();
    }
  }
  __syncthreads();

  const float rstd = rsqrtf(sdata[0] / static_cast<float>(cols) + eps);
#pragma unroll 4
  for (int64_t i = tid; i < vec_cols; i += kBlockSize) {
    const float4 x = vec_input[i];
    const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
    vec_output[i] = make_float4(x.x * rstd * w.x, x.y * rstd * w.y, x.z * rstd * w.z, x.w * rstd * w.w);
  }
  if constexpr (!kAligned)
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += kBlockSize) {
      const float normalized = row_input[i] * rstd;
      row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
    }
}

// kTested: each block tests the alignment of its row, as 04 does. Else the launcher tests all rows at once.
template <int kVectors, bool kTested>
void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
            cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  auto* kernel = rms_norm_kernel_hybrid_variant<kVectors, false>;
  if constexpr (!kTested) {
    bool aligned = cols % 4 == 0;
    for (const float* tensor : {input, weight, static_cast<const float*>(output)})
      aligned = aligned && reinterpret_cast<uintptr_t>(tensor) % sizeof(float4) == 0;
    if (aligned) kernel = rms_norm_kernel_hybrid_variant<kVectors, true>;
  }
  kernel<<<static_cast<unsigned>(rows), hybrid::kBlockSize, 0, stream>>>(input, weight, output, cols, eps);
}

}  // namespace ladder::matrix::w2l3
