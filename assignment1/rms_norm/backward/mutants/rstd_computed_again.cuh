// rstd_computed_again: rstd comes from x again although the forward pass has stored it, so the two passes may differ.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::rstd_computed_again {

struct Body : parts::Right {
  template <class T>
  static __device__ RowFactors factors(const Tensors<T>& t, int64_t, float2 sums) {
    const auto cols = static_cast<float>(t.cols);
    const float rstd = rsqrtf(sums.x / cols + t.eps);  // the fault: t.rstd[row], if it is there
    return {rstd, rstd * rstd * (sums.y / cols)};
  }
};

inline const Mutant<RmsNormBackward> mutant{"rstd_computed_again", "the stored rstd is not used", parts::launch<Body>,
                                            ", rstd, "};

}  // namespace ladder::backward::mutants::rstd_computed_again
