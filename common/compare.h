// Comparison of a kernel's output with the oracle. NaN fails; an element that still holds the poison is named.
#pragma once
#include <cstdint>
#include <string>

#include "common/reference.h"

namespace ladder {

struct Comparison {
  int64_t elements = 0;
  int64_t wrong = 0;             // off by more than the tolerance, NaN or unwritten
  int64_t unwritten = 0;         // of those: still poisoned
  int64_t first = -1;            // flat index of the first wrong element
  int64_t worst = -1;            // flat index of the worst wrong element: NaN before any finite error
  double worst_wrong_error = 0;  // its relative error
  double worst_error = 0;        // largest relative error of all elements that are not NaN
  double tolerance = 0;
};

// got: the whole output, rows × cols.
Comparison compare(const Reference& reference, const float* got);

// One sentence about a failed comparison: how many, the first and the worst with expected and got.
std::string describe(const Comparison& comparison, const Reference& reference, const float* got);

}  // namespace ladder
