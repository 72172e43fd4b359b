// Walkers that follow a table from word to word: every step needs the result of the step before.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Walk {
  // table: n words, table[i] = (factor · i + shift) mod n, n a power of two; factor and shift belong to the seed. From
  //   any word on, a walker visits all others before it comes back.
  // end: 32 · warps words; end[w] is where walker w is after kSteps steps. It starts at word w · apart mod n.
  // scratch: n words.
  // ticks: 4 words that are not checked: cycles, nanoseconds and the SM, as the kernel has read them.
  // scratch and ticks are aligned to 256 bytes, table and end to 4.
  using Launch = void (*)(const uint32_t* table, uint32_t* end, uint32_t* scratch, uint32_t* ticks, int64_t n,
                          int64_t warps, int64_t apart, cudaStream_t stream);
  static const Operator& get();

  static constexpr int kSteps = 1026;  // no multiple of a small table's length, after which a walker is back
};

}  // namespace ladder
