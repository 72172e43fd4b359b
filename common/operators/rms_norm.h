// RMSNorm of the rows of a float32 matrix: y = x / sqrt(mean(x²) + eps) · weight.
#pragma once
#include "common/stage.h"

namespace ladder {

struct RmsNorm {
  // input and output: rows × cols floats, contiguous, not necessarily aligned beyond 4 bytes; weight: cols floats or
  // nullptr.
  using Launch = void (*)(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  // Which shapes a kernel with one block per row accepts: a grid has at most 2^31 - 1 blocks.
  static const char* one_block_per_row(const Shape& shape) { return blocks_per_row<1>(shape); }
  template <int kBlocks>
  static const char* blocks_per_row(const Shape& shape) {
    return shape[0] > INT32_MAX / kBlocks ? "more rows than a grid has blocks for; give fewer rows" : nullptr;
  }
};

}  // namespace ladder
