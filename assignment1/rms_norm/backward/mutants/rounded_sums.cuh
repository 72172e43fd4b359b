// rounded_sums: dweight is added up in the type of the elements, which loses what is small beside the sum.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::rounded_sums {

struct Body : parts::Right {
  template <class T>
  static __device__ float column(const Tensors<T>& t, int64_t col) {
    T sum = static_cast<T>(0.0f);  // the fault: float
    for (int64_t row = 0; row < t.rows; ++row) sum = static_cast<T>(static_cast<float>(sum) + term(t, row, col));
    return static_cast<float>(sum);
  }
};

inline const Mutant<RmsNormBackward> mutant{"rounded_sums",
                                            "the running sum of dweight is rounded to the type of the elements",
                                            parts::launch<Body>, "dweight: "};

}  // namespace ladder::backward::mutants::rounded_sums
