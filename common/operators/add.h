// The sum of two vectors of floats, element by element; the second may be a table that is used again and again.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Add {
  // c[i] = a[i] + b[i], n floats each; no pointer is necessarily aligned beyond 4 bytes.
  using Launch = void (*)(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream);
  static const Operator& get();
};

struct AddTable {
  // c[i] = a[i] + table[i % length(n)], n floats of a and c.
  using Launch = void (*)(const float* a, const float* table, float* c, int64_t n, cudaStream_t stream);
  static const Operator& get();

  // An eighth of n, so that a launch reads the table eight times; a multiple of 1024, and at least that.
  static constexpr int64_t length(int64_t n) { return n < 16384 ? 1024 : n / 8192 * 1024; }
};

}  // namespace ladder
