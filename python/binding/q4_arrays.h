// Arrays as the columns and the bytes of include/q4_gemm: what is wrong with them is raised as ValueError.
#pragma once
#include <q4_gemm/q4_gemm.cuh>

#include "arrays.h"

namespace rms_norm_binding {

struct Columns {
  int64_t n = 1, stride = q4_gemm::kContiguous;
};
// The leading dimensions of an array. Throws unless one stride reaches all of its columns.
inline Columns columns_of(const Array& a) {
  if (a.tensor->ndim == 0) TVM_FFI_THROW(ValueError) << a.name << " has no dimension; (..., k) is wanted";
  Columns columns;
  for (int i = a.last() - 1; i >= 0; --i) {
    const int64_t size = a.tensor->shape[i], stride = a.stride(i);
    if (size == 0) return {0};
    if (size == 1) continue;
    if (columns.n == 1) columns.stride = stride;
    if (stride != columns.n * columns.stride || columns.stride < a.cols())
      TVM_FFI_THROW(ValueError) << "the rows of " << a.name << " of shape " << a.shape()
                                << " do not follow each other with one stride; make a contiguous copy first";
    columns.n *= size;
  }
  return columns;
}

inline bool is_bytes(const Array& a) {
  const DLDataType t = a.tensor->dtype;
  return t.code == kDLUInt && t.bits == 8 && t.lanes == 1;
}
// Bytes of one dimension, of which there must be as many as the header says.
inline void* bytes_of(const Array& a, size_t wanted, const Array& x) {
  check_place(a, x);
  if (!is_bytes(a) || a.tensor->ndim != 1 || static_cast<size_t>(a.cols()) != wanted)
    TVM_FFI_THROW(ValueError) << a.name << " has the shape " << a.shape() << " and elements of type "
                              << name_of(a.tensor->dtype) << "; (" << wanted << ",) of uint8 is wanted";
  return a.data();
}

inline void check_same_shape(const Array& a, const Array& x, int dimensions) {
  if (a.tensor->ndim != x.tensor->ndim || !std::equal(a.tensor->shape, a.tensor->shape + dimensions, x.tensor->shape))
    TVM_FFI_THROW(ValueError) << a.name << " has the shape " << a.shape() << ", and " << x.name << " has the shape "
                              << x.shape() << "; they do not fit";
  check_place(a, x);
}

}  // namespace rms_norm_binding
