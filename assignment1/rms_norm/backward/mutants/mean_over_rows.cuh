// mean_over_rows: the mean is divided by the other dimension, which is right for square matrices.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::mean_over_rows {

struct Body : parts::Right {
  template <class T>
  static __device__ RowFactors factors(const Tensors<T>& t, int64_t row, float2 sums) {
    const float rstd = row_factors(t, row, sums).rstd;
    return {rstd, rstd * rstd * (sums.y / static_cast<float>(t.rows))};  // the fault: cols
  }
};

inline const Mutant<RmsNormBackward> mutant{"mean_over_rows", "mean(g · x) is divided by the number of rows",
                                            parts::launch<Body>, "dx: "};

}  // namespace ladder::backward::mutants::mean_over_rows
