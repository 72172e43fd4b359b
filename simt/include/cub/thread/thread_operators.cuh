// Function objects for collectives. CUB of CUDA 13 takes cuda::std::plus<>, cuda::maximum<> and their like, and no
// longer has Sum, Max and Min, with which older programs were written.
#pragma once
#include <cuda/functional>
#include <cuda/std/functional>

#include "cub/util_type.cuh"

namespace cub {

using Sum [[deprecated("CUB of CUDA 13 has no cub::Sum: write cuda::std::plus<>")]] = cuda::std::plus<>;
using Max [[deprecated("CUB of CUDA 13 has no cub::Max: write cuda::maximum<>")]] = cuda::maximum<>;
using Min [[deprecated("CUB of CUDA 13 has no cub::Min: write cuda::minimum<>")]] = cuda::minimum<>;

// Of two pairs of an index and a value, the one with the larger value; of equal ones, the one with the lower index.
struct ArgMax {
  template <class T, class Index>
  KeyValuePair<Index, T> operator()(const KeyValuePair<Index, T>& a, const KeyValuePair<Index, T>& b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T, class Index>
  KeyValuePair<Index, T> operator()(const KeyValuePair<Index, T>& a, const KeyValuePair<Index, T>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

}  // namespace cub
