// partial_sums_of_another_launch: the second kernel adds up as many partial sums as the workspace has rows for, at
// least two; those that this launch has not written are an earlier launch's.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::partial_sums_of_another_launch {

struct Body {
  template <class T>
  static __device__ void run(const Tensors<T>& t) {
    const int64_t col = int64_t{blockIdx.x} * 32 + threadIdx.x;
    if (threadIdx.y > 0 || col >= t.cols) return;
    float sums[2] = {};
    for (int64_t row = 0; row < t.rows; ++row) sums[row % 2] += parts::Right::term(t, row, col);
    const int64_t written = t.rows < 2 ? t.rows : 2, wanted = t.rows > 1 ? 3 : t.rows;
    for (int64_t i = 0; i < written; ++i) t.partial[i * t.cols + col] = sums[i];
    float sum = 0.0f;
    for (int64_t i = 0; i < wanted; ++i) sum += t.partial[i * t.cols + col];  // the fault: i < written
    t.dweight[col] = static_cast<T>(sum);
  }
};

inline const Mutant<RmsNormBackward> mutant{
    "partial_sums_of_another_launch", "rows of partial sums are added up that only a launch with more rows has written",
    parts::launch_tiles<Body>, "dweight: "};

}  // namespace ladder::backward::mutants::partial_sums_of_another_launch
