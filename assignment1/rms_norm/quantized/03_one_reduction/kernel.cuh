// 03_one_reduction: 02_one_kernel, which finds the largest |x · weight| while it adds up the squares. rstd is the same
// positive number for the whole row, and rounding keeps the order: so the largest product becomes the largest |y|.
//
// It removes one of three walks, and one of two reductions with its barrier (counters: bytes that loads ask for;
// barriers).
// It leaves: a row is read twice (counter: bytes that loads ask for).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::one_reduction {

template <Format format>
__global__ void row_kernel(const QuantizedCall c) {
  __shared__ SumAndMost in_warps[32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  SumAndMost row = {0.0f, 0.0f};
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x) {
    const bf16 kept = kept_at(c, begin + col);
    if (c.residual_out != nullptr) c.residual_out[begin + col] = kept;
    row.sum += __bfloat162float(kept) * __bfloat162float(kept);
    row.most = fmaxf(row.most, fabsf(product_of(c, kept, col)));
  }
  row = block_sum_and_most(row, in_warps);
  const float rstd = rstd_of(c, row.sum);
  const float scale = scale_of<format>(c, __bfloat162float(norm_of(row.most, rstd)));
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x) {
    const bf16 y = norm_of(product_of(c, kept_at(c, begin + col), col), rstd);
    static_cast<uint8_t*>(c.q)[begin + col] = code_of<format>(__bfloat162float(y) * (1.0f / scale));
    if (c.y != nullptr) c.y[begin + col] = y;
  }
  if (threadIdx.x == 0 && c.scales != nullptr) c.scales[blockIdx.x] = scale;
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  with_format(call.format,
              [&](auto format) { row_kernel<decltype(format)::value><<<blocks, kThreads, 0, stream>>>(call); });
}

inline const Stage<RmsNormQuantized> stage{
    "03_one_reduction", "the sum and the largest in one walk", launch, {0, RmsNormQuantized::refuses_blocks}};

}  // namespace ladder::quantized::one_reduction
