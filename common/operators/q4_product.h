// y = W · x + bias as include/q4_gemm computes it: W in q4_0, x of floats, which become numbers of q8_1 on the way.
#pragma once
#include <optional>

#include "common/operators/q4_blocks.h"
#include "common/stage.h"
#include "common/types.h"

namespace ladder {

struct Q4Product {
  struct Types {
    Type x, y;
    std::optional<Type> bias = {};
    bool repacked = true;  // weights in the form of include/q4_gemm/layout.cuh, or blocks of q4_0
  };
  static const Operator& get(Types types);

  // y: n columns of m; weights; x: n columns of k; the bias m elements, if there is one.
  enum { kY, kWeights, kX, kBias };
  using Launch = void (*)(const Arguments& arguments, cudaStream_t stream);
};

}  // namespace ladder
