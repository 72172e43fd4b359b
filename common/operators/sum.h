// The sum of a vector of floats.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Sum {
  // input: n floats, not necessarily aligned beyond 4 bytes; output: one float, the sum; the sum of no elements is 0.
  // scratch: scratch_floats(n) floats, aligned to 256 bytes. Its contents before the launch are unknown.
  using Launch = void (*)(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream);
  static const Operator& get();

  // Enough for one partial sum per 256 elements, one per 256 of these sums, and so on; and for one per block of a grid
  // that fills the largest GPU several times.
  static int64_t scratch_floats(int64_t n) {
    int64_t sums = 0;
    for (; n > 1; sums += n) n = (n + 255) / 256;
    return sums < kLeastScratch ? kLeastScratch : sums;
  }
  static constexpr int64_t kLeastScratch = 1 << 15;
};

}  // namespace ladder
