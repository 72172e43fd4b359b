// y = W · x with W in q4_0 and x in q8_1 (common/operators/q4_blocks.h): m × k weights, n columns of k activations
// each.
//   y[column][row] = sum over the blocks b of a row of d_w[b] · d_x[b] · sum over i of (q_w[b][i] - 8) · q_x[b][i].
#pragma once
#include <cuda_runtime_api.h>

#include "common/operators/q4_blocks.h"
#include "common/stage.h"

namespace ladder {

// Weights in two arrays that hold the bits of block_q4_0: qs, 16 bytes a block and aligned to 16, and after the last of
// them d, 2 bytes a block.
struct Repacked {
  const uint4* qs;
  const uint16_t* d;
};

// Weights as the tensor cores take them, padded with zeros to groups of 64 rows and chunks of 64 k. A piece, which is a
// chunk of a group, has 128 times 16 bytes of numbers, and in another array 32 times four scales:
//   numbers[piece · 128 + 32 w + 4 g + t]   word 2 b + h: numbers 8 t to 8 t + 7 of block b of row 16 w + g + 8 h
//   scales[piece · 32 + 8 w + g]            float16 2 b + h: the scale of that block
// with w and t from 0 to 3, g from 0 to 7, b and h from 0 to 1. Piece `group · chunks + chunk` begins there. Byte i of
// a word is number i of its eight, in the low nibble, and number 4 + i in the high one.
struct Fragments {
  const uint4* numbers;
  const uint2* scales;
  int64_t groups, chunks;
};

// W is const block_q4_0*, weights as llama.cpp stores them, Repacked or Fragments.
template <class W>
struct Q4Gemm {
  // w: m rows of k / 32 blocks. x: n columns of k / 32 blocks, each column contiguous, aligned to 4 bytes. y: n columns
  // of m floats. scratch: kSplits · min(n, kSplitColumns) · m floats, whose contents before the launch are unknown;
  // with Fragments kScratchOfX floats for each chunk of 64 k and each column, of which there are a multiple of 64.
  using Launch = void (*)(W w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                          cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kSplits = 8, kSplitColumns = 16;
  static constexpr int64_t kScratchOfX = 34;  // 64 float16 and 2 float32

  // What no stage accepts.
  static const char* refuses(const Shape& shape) {
    if (shape[2] % kBlock != 0) return "a block of q4_0 is 32 weights of a row; give a k that is a multiple of 32";
    if (shape[1] > INT32_MAX) return "more columns than a grid has blocks for; give a smaller n";
    if (shape[0] > 16 * 65535) return "more rows than a grid has blocks for, 16 rows each; give a smaller m";
    return nullptr;
  }
};

// y stands first among the tensors, and weights are told where their parts are.
template <class W>
void call(Q4Gemm<W>, void (*launch)(W, const block_q8_1*, float*, float*, int64_t, int64_t, int64_t, cudaStream_t),
          const Arguments& arguments, cudaStream_t stream);

using Q4GemmBlocks = Q4Gemm<const block_q4_0*>;
using Q4GemmRepacked = Q4Gemm<Repacked>;
using Q4GemmFragments = Q4Gemm<Fragments>;

}  // namespace ladder
