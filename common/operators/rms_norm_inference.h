// RMSNorm as an inference engine calls it: y = x / sqrt(mean(x²) + eps) · weight, for rows of type T and a weight of
// type W. There is always a weight, sums are float32, and a result is rounded once.
#pragma once
#include "common/stage.h"

struct __half;

namespace ladder {

template <class T, class W = T>
struct RmsNormInference {
  // x and y: rows × cols elements, contiguous; weight: cols elements. None is aligned to more than an element.
  using Launch = void (*)(const T* x, const W* weight, T* y, int64_t rows, int64_t cols, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  // The kernels count the elements of a row, and the rows of a grid, in 32 bits, as the document's do.
  static const char* refuses(const Shape& shape) {
    if (shape[0] > INT32_MAX) return "more rows than a grid has blocks for; give fewer rows";
    return shape[1] > INT32_MAX - 1024 ? "a row of more elements than an int counts; give fewer cols" : nullptr;
  }
};

using RmsNormAllF32 = RmsNormInference<float>;
using RmsNormF32Fp16w = RmsNormInference<float, __half>;
using RmsNormPureFp16 = RmsNormInference<__half>;

}  // namespace ladder
