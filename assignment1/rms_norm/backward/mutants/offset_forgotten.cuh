// offset_forgotten: g = dy · weight, as for models whose weight is stored whole; some store weight - 1.
#pragma once

#include "parts.cuh"

namespace ladder::backward::mutants::offset_forgotten {

struct Body : parts::Right {
  template <class T>
  static __device__ float factor(const Tensors<T>& t, int64_t col) {
    return t.weight == nullptr ? 1.0f : static_cast<float>(t.weight[col]);  // the fault: weight_offset +
  }
};

inline const Mutant<RmsNormBackward> mutant{"offset_forgotten", "the weight without its offset", parts::launch<Body>,
                                            "weight offset 1"};

}  // namespace ladder::backward::mutants::offset_forgotten
