// Reductions and scans of the items of one thread. Floating-point results may differ from CUB's in the last bits, since
// CUB combines many items in a tree.
#pragma once
#include "cub/thread/thread_operators.cuh"
#include "simt/analysis.h"

namespace cub {

template <class T, int items, class Operator>
SIMT_FOR_CALLER T ThreadReduce(const T (&input)[items], Operator op) {
  T total = input[0];
  for (int i = 1; i < items; ++i) total = op(total, input[i]);
  return total;
}
template <class T, int items, class Operator, class Prefix>
SIMT_FOR_CALLER T ThreadReduce(const T (&input)[items], Operator op, Prefix prefix) {
  T total = prefix;
  for (int i = 0; i < items; ++i) total = op(total, input[i]);
  return total;
}

namespace detail {

// The prefix counts where apply_prefix says so. `output` may be `input`.
template <class T, int items, class Operator>
SIMT_FOR_CALLER void thread_scan_inclusive(const T* input, T* output, Operator op, T prefix, bool apply_prefix = true) {
  T total = apply_prefix ? T(op(prefix, input[0])) : input[0];
  output[0] = total;
  for (int i = 1; i < items; ++i) output[i] = total = op(total, input[i]);
}
template <class T, int items, class Operator>
SIMT_FOR_CALLER void thread_scan_exclusive(const T* input, T* output, Operator op, T prefix, bool apply_prefix = true) {
  T total = apply_prefix ? T(op(prefix, input[0])) : input[0];
  output[0] = prefix;
  for (int i = 1; i < items; ++i) {
    const T next = op(total, input[i]);
    output[i] = total;
    total = next;
  }
}

}  // namespace detail
}  // namespace cub
