// Every word of a group gets the sum of its group added to it: the pattern of a norm, in arithmetic that is exact.
#pragma once
#include "common/stage.h"

namespace ladder {

struct GroupSum {
  // to[i] = from[i] + the sum of the group of i, modulo 2^32; n words each, with any bits. Words kGroup·g to kGroup·g +
  // kGroup - 1 are a group, and the last group may be shorter. No pointer is necessarily aligned beyond 4 bytes.
  // scratch: one word for each kGroup / 8 words, rounded up. Its contents before the launch are unknown.
  using Launch = void (*)(const uint32_t* from, uint32_t* to, uint32_t* scratch, int64_t n, cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kGroup = 32768;
};

}  // namespace ladder
