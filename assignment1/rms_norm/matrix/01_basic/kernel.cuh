// 01_basic: one thread per row. The formula as a loop, a simple and right kernel to compare every later stage with.
//
// It leaves two defects. The 32 lanes of a warp read 32 different rows, so one load touches 32 sectors of 32 bytes and
// uses 4 bytes of each (counter: sectors per request, 32 where 4 would do). And 8192 rows make 8192 threads, in 32
// blocks, for a GPU that needs hundreds of thousands (counter: achieved occupancy).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/rms_norm.h"

namespace ladder::matrix::basic {

constexpr int kBlockSize = 256;
constexpr int64_t kPiece = 1024;

__global__ void rms_norm_kernel_basic(const float* __restrict__ input, const float* __restrict__ weight,
                                      float* __restrict__ output, int64_t rows, int64_t cols, float eps) {
  const int64_t row = int64_t{blockIdx.x} * kBlockSize + threadIdx.x;
  if (row >= rows) return;
  const float* row_input = input + row * cols;
  float* row_output = output + row * cols;

  // In pieces, because adding a term to a float 2^24 times as large changes nothing: 16 million columns are enough.
  float sum = 0.0f;
  for (int64_t first = 0; first < cols; first += kPiece) {
    const int64_t last = first + kPiece < cols ? first + kPiece : cols;
    float piece = 0.0f;
    for (int64_t i = first; i < last; ++i) piece += row_input[i] * row_input[i];
    sum += piece;
  }

  const float rstd = rsqrtf(sum / static_cast<float>(cols) + eps);
  for (int64_t i = 0; i < cols; ++i) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  const auto blocks = static_cast<unsigned>((rows + kBlockSize - 1) / kBlockSize);
  rms_norm_kernel_basic<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, rows, cols, eps);
}

inline const Stage<RmsNorm> stage{"01_basic", "one thread per row", launch};

}  // namespace ladder::matrix::basic
