// weight_in_dweight: the weight is multiplied into its own gradient.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::weight_in_dweight {

struct Body : parts::Right {
  template <class T>
  static __device__ float column(const Tensors<T>& t, int64_t col) {
    float sum = 0.0f;
    for (int64_t row = 0; row < t.rows; ++row)
      sum += weight_factor(t, col) * term(t, row, col);  // the fault: no factor
    return sum;
  }
};

inline const Mutant<RmsNormBackward> mutant{"weight_in_dweight", "dweight is summed over g and not over dy",
                                            parts::launch<Body>, "dweight: "};

}  // namespace ladder::backward::mutants::weight_in_dweight
