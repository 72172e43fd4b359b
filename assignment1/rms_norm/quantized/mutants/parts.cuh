// The right parts of 02_one_kernel, also for blocks of columns, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::mutants::parts {

// What a mutant replaces one function of.
struct Right {
  template <Format format>
  static __device__ uint8_t code(float number) {
    return code_of<format>(number);
  }
  static __device__ float magnitude(float y, float /*kept*/) { return fabsf(y); }
  template <Format format>
  static __device__ float scale(const QuantizedCall& c, float most) {
    return scale_of<format>(c, most);
  }
  static __device__ float divided(float y, float scale) { return y * (1.0f / scale); }
  static __device__ float largest(float value, float* in_warps) { return block_max(value, in_warps); }
  static __device__ int64_t place(const QuantizedCall& c, int64_t block) { return block * c.rows + blockIdx.x; }
};

constexpr int kBlock = static_cast<int>(kBlockColumns);  // threads: a column each of a block of columns

template <class Body, Format format>
__global__ void row_kernel(const QuantizedCall c) {
  __shared__ float in_warps[3][32];
  const int64_t begin = int64_t{blockIdx.x} * c.cols;
  float sum = 0.0f, most = 0.0f;
  for (int64_t col = threadIdx.x; col < c.cols; col += kBlock) {
    const bf16 kept = kept_at(c, begin + col);
    if (c.residual_out != nullptr) c.residual_out[begin + col] = kept;
    sum += __bfloat162float(kept) * __bfloat162float(kept);
  }
  const float rstd = rstd_of(c, block_sum(sum, in_warps[0]));
  const auto magnitude_at = [&](int64_t col, bf16 y) {
    return Body::magnitude(__bfloat162float(y),
                           __bfloat162float(norm_of(__bfloat162float(kept_at(c, begin + col)), rstd)));
  };
  const auto y_at = [&](int64_t col) { return norm_of(product_of(c, kept_at(c, begin + col), col), rstd); };
  float scale = 0.0f;
  if (!c.blocks) {
    for (int64_t col = threadIdx.x; col < c.cols; col += kBlock) most = fmaxf(most, magnitude_at(col, y_at(col)));
    scale = Body::template scale<format>(c, Body::largest(most, in_warps[1]));
    if (threadIdx.x == 0 && c.scales != nullptr) c.scales[blockIdx.x] = scale;
  }
  for (int64_t block = 0; block * kBlock < c.cols; ++block) {
    const int64_t col = block * kBlock + threadIdx.x;
    const bf16 y = col < c.cols ? y_at(col) : __float2bfloat16(0.0f);
    if (c.blocks) {
      scale = Body::template scale<format>(
          c, Body::largest(col < c.cols ? magnitude_at(col, y) : 0.0f, in_warps[1 + block % 2]));
      if (threadIdx.x == 0 && c.scales != nullptr) c.scales[Body::place(c, block)] = scale;
    }
    if (col >= c.cols) continue;
    static_cast<uint8_t*>(c.q)[begin + col] = Body::template code<format>(Body::divided(__bfloat162float(y), scale));
    if (c.y != nullptr) c.y[begin + col] = y;
  }
}

template <class Body>
void launch(const QuantizedCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  with_format(call.format, [&](auto format) {
    row_kernel<Body, decltype(format)::value><<<static_cast<unsigned>(call.rows), kBlock, 0, stream>>>(call);
  });
}

}  // namespace ladder::quantized::mutants::parts
