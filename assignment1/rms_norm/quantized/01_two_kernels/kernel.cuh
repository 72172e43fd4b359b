// 01_two_kernels: the norm, and then its quantization, as two kernels of a library.
//
// It leaves: y goes to memory in 16 bits and comes back twice, once for its largest number and once to be divided
// (counters: written to DRAM; bytes that loads ask for).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::two_kernels {

__global__ void norm_kernel(const QuantizedCall c, bf16* y) {
  __shared__ float in_warps[32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  float sum = 0.0f;
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x) {
    const bf16 kept = kept_at(c, begin + col);
    if (c.residual_out != nullptr) c.residual_out[begin + col] = kept;
    sum += __bfloat162float(kept) * __bfloat162float(kept);
  }
  const float rstd = rstd_of(c, block_sum(sum, in_warps));
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x)
    y[begin + col] = norm_of(product_of(c, kept_at(c, begin + col), col), rstd);
}

template <Format format>
__global__ void quantize_kernel(const QuantizedCall c, const bf16* y) {
  __shared__ float in_warps[32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  float most = 0.0f;
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x)
    most = fmaxf(most, fabsf(__bfloat162float(y[begin + col])));
  const float scale = scale_of<format>(c, block_max(most, in_warps));
  for (int64_t col = threadIdx.x; col < c.cols; col += blockDim.x)
    static_cast<uint8_t*>(c.q)[begin + col] = code_of<format>(__bfloat162float(y[begin + col]) * (1.0f / scale));
  if (threadIdx.x == 0 && c.scales != nullptr) c.scales[blockIdx.x] = scale;
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  bf16* const y = call.y != nullptr ? call.y : call.scratch;
  norm_kernel<<<blocks, kThreads, 0, stream>>>(call, y);
  with_format(call.format,
              [&](auto format) { quantize_kernel<decltype(format)::value><<<blocks, kThreads, 0, stream>>>(call, y); });
}

inline const Stage<RmsNormQuantized> stage{
    "01_two_kernels", "the norm, then its quantization", launch, {0, RmsNormQuantized::refuses_blocks}};

}  // namespace ladder::quantized::two_kernels
