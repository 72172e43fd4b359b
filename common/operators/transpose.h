// The transpose of a matrix of floats, bit by bit: output[col][row] = input[row][col].
#pragma once
#include "common/stage.h"

namespace ladder {

struct Transpose {
  // input: rows × cols floats, output: cols × rows, both contiguous, with any bits; neither pointer is necessarily
  // aligned beyond 4 bytes.
  using Launch = void (*)(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream);
  static const Operator& get();

  // Which shapes a kernel with one block per tile of kTile × kTile elements accepts: a grid has at most 2^31 - 1
  // blocks.
  template <int kTile>
  static const char* one_block_per_tile(const Shape& shape) {
    const int64_t tall = (shape[0] + kTile - 1) / kTile, wide = (shape[1] + kTile - 1) / kTile;
    return wide > 0 && tall > INT32_MAX / wide ? "more tiles than a grid has blocks for; give fewer rows or columns"
                                               : nullptr;
  }
};

// The transpose of a square matrix in its own memory: a launcher like Transpose's gets the same pointer twice.
struct TransposeInPlace {
  using Launch = Transpose::Launch;
  static const Operator& get();

  static const char* is_square(const Shape& shape) {
    if (shape[0] != shape[1]) return "only a square matrix keeps its shape in place; give equal rows and cols";
    return Transpose::one_block_per_tile<32>(shape);
  }
};

}  // namespace ladder
