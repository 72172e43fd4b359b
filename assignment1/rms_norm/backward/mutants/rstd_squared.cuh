// rstd_squared: one factor rstd is lost in the second term, which is right for rows whose mean square is 1.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::rstd_squared {

struct Body : parts::Right {
  template <class T>
  static __device__ RowFactors factors(const Tensors<T>& t, int64_t row, float2 sums) {
    const float rstd = row_factors(t, row, sums).rstd;
    return {rstd, rstd * (sums.y / static_cast<float>(t.cols))};  // the fault: rstd · rstd
  }
};

inline const Mutant<RmsNormBackward> mutant{"rstd_squared", "rstd² where the formula has rstd³", parts::launch<Body>,
                                            "dx: "};

}  // namespace ladder::backward::mutants::rstd_squared
