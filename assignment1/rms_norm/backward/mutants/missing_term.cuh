// missing_term: dx is what it would be if rstd did not depend on x.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::missing_term {

struct Body : parts::Right {
  static __device__ float gradient(float g, float, RowFactors row_is) {
    return row_is.rstd * g;  // the fault: g - x · rstd² · mean(g · x)
  }
};

inline const Mutant<RmsNormBackward> mutant{"missing_term", "the mean's part of dx is left out", parts::launch<Body>,
                                            "dx: "};

}  // namespace ladder::backward::mutants::missing_term
