// A copy of words: to[i] = from[i], bit by bit.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Copy {
  // n floats each, with any bits; neither pointer is necessarily aligned beyond 4 bytes.
  using Launch = void (*)(const float* from, float* to, int64_t n, cudaStream_t stream);
  static const Operator& get();

  static constexpr uint32_t kPatternStep = 0x9e3779b9u;  // word i of the input is i times this
};

// Reading alone, with a launcher like Copy's: `to` is zero before the launch, and afterwards its words add up to the
// sum of those of `from`, modulo 2^32.
struct Read {
  using Launch = Copy::Launch;
  static const Operator& get();
};

// Writing alone, with a launcher like Copy's: it writes what a copy would have written. `from` is not used.
struct Write {
  using Launch = Copy::Launch;
  static const Operator& get();
};

}  // namespace ladder
