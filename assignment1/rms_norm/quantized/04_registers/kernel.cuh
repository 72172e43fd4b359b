// 04_registers: 03_one_reduction with the row's products in registers, eight columns per thread.
//
// It removes the second reading of x and of the weight (counters: bytes that loads ask for; global load requests).
// It leaves: a load moves 2 bytes per lane and a store 1 (counters: instructions executed; sectors per store request).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::registers {

template <Format format>
__global__ void __launch_bounds__(kMostThreads) row_kernel(const QuantizedCall c) {
  __shared__ SumAndMost in_warps[32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  float product[kColumns] = {};
  SumAndMost row = {0.0f, 0.0f};
#pragma unroll
  for (int k = 0; k < kColumns; ++k)
    if (const int64_t col = threadIdx.x + k * blockDim.x; col < c.cols) {
      const bf16 kept = kept_at(c, begin + col);
      if (c.residual_out != nullptr) c.residual_out[begin + col] = kept;
      product[k] = product_of(c, kept, col);
      row.sum += __bfloat162float(kept) * __bfloat162float(kept);
      row.most = fmaxf(row.most, fabsf(product[k]));
    }
  row = block_sum_and_most(row, in_warps);
  const float rstd = rstd_of(c, row.sum);
  const float scale = scale_of<format>(c, __bfloat162float(norm_of(row.most, rstd)));
#pragma unroll
  for (int k = 0; k < kColumns; ++k)
    if (const int64_t col = threadIdx.x + k * blockDim.x; col < c.cols) {
      const bf16 y = norm_of(product[k], rstd);
      static_cast<uint8_t*>(c.q)[begin + col] = code_of<format>(__bfloat162float(y) * (1.0f / scale));
      if (c.y != nullptr) c.y[begin + col] = y;
    }
  if (threadIdx.x == 0 && c.scales != nullptr) c.scales[blockIdx.x] = scale;
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  with_format(call.format, [&](auto format) {
    row_kernel<decltype(format)::value><<<blocks, threads_for(call.cols), 0, stream>>>(call);
  });
}

inline const Stage<RmsNormQuantized> stage{
    "04_registers", "the row stays in registers", launch, {0, RmsNormQuantized::refuses_blocks_and_beyond_8192}};

}  // namespace ladder::quantized::registers
