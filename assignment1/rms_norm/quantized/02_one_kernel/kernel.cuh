// 02_one_kernel: 01_two_kernels in one kernel, which computes y again where it is needed.
//
// It removes y's way through memory (counters: written to DRAM; global store requests).
// It leaves three walks over a row, and two reductions with a barrier each: the largest |y| is looked for when rstd is
// known (counters: bytes that loads ask for; stalled at a barrier).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::one_kernel {

template <Format format>
__global__ void row_kernel(const QuantizedCall c) {
  __shared__ float in_warps[2][32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  float sum = 0.0f, most = 0.0f;
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x) {
    const bf16 kept = kept_at(c, begin + col);
    if (c.residual_out != nullptr) c.residual_out[begin + col] = kept;
    sum += __bfloat162float(kept) * __bfloat162float(kept);
  }
  const float rstd = rstd_of(c, block_sum(sum, in_warps[0]));
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x) {
    const bf16 y = norm_of(product_of(c, kept_at(c, begin + col), col), rstd);
    most = fmaxf(most, fabsf(__bfloat162float(y)));
  }
  const float scale = scale_of<format>(c, block_max(most, in_warps[1]));
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
    "02_one_kernel", "one kernel, three walks", launch, {0, RmsNormQuantized::refuses_blocks}};

}  // namespace ladder::quantized::one_kernel
