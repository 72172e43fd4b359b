// Comparison of an output with the oracle. NaN fails unless the oracle expects it. An element that still holds the
// poison is reported as unwritten.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>

#include "common/operator.h"

namespace ladder {

struct Comparison {
  int64_t elements = 0;
  int64_t wrong = 0;        // outside the bounds, NaN or unwritten
  int64_t unwritten = 0;    // of those: still poisoned
  int64_t nans = 0;         // of those: NaN that was written
  int64_t first = -1;       // flat index of the first wrong element
  int64_t worst = -1;       // flat index of the worst wrong element: NaN before any finite error
  double worst_wrong = 0;   // its distance from the exact value, in units of what the bounds allow
  double worst_of_all = 0;  // the largest such distance of all elements that are not NaN
};

// One output: its place in the operator's list, its variant, and what the kernel wrote, rows without gaps.
struct Output {
  const Oracle& oracle;
  const Variant& variant;
  const Tensor& tensor;
  int place;
  const void* got;
};

// Whether an element is within the oracle's answer to it.
bool is_right(const Output& output, int64_t index, double expected, double low, double high);

// Which rows are checked if only `chosen` of them are: the first, the last and others in between.
inline int64_t sampled_row(int64_t number, int64_t chosen, int64_t rows) {
  return chosen == rows ? number : number * (rows - 1) / std::max<int64_t>(chosen - 1, 1);
}

// The largest error of all elements, in the unit of the tolerance. It is NaN if a wrong element is NaN, and infinite if
// no error is allowed and there is one.
double error_of(const Comparison& comparison, double tolerance);

// Compares all elements, or those of `sample` rows if the tensor has more.
Comparison compare(const Output& result, int64_t sample = INT64_MAX);

// One sentence about a failed comparison: how many elements are wrong, the first and the worst with expected and
// actual value, and what is regular about where they lie.
std::string describe(const Comparison& comparison, const Output& result);

}  // namespace ladder
