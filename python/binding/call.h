// A call of the header without the types of its elements: binding.cu makes it, and an instance carries it out.
#pragma once
#include <rms_norm/rms_norm.cuh>

#include "types.h"

namespace rms_norm_binding {

using Tensor = rms_norm::Tensor<void>;
template <class T>
rms_norm::Tensor<T> of_type(const Tensor& tensor) {
  return {static_cast<T*>(tensor.data), tensor.layout};
}

// The tensor, with memory for its rows' rstd or without.
template <bool has_rstd, class T, class F>
auto with_rstd(const rms_norm::Tensor<T>& tensor, F* rstd) {
  if constexpr (has_rstd)
    return rms_norm::WithRstd{tensor, rstd};
  else
    return tensor;
}

struct Call {
  Tensor x{}, residual{}, residual_out{}, y{};
  const void* weight = nullptr;
  float* rstd = nullptr;  // of each row, where it is to be stored
  int64_t rows = 0, cols = 0;
  rms_norm::Options options;
  rms_norm::Names names;
};

// Calls the header, and if it refuses the call, says why.
using Instance = cudaError_t (*)(const Call&, cudaStream_t, const char** refusal);

// Where the instance of these types stands; nullptr if it is not compiled.
Instance& instance(Type x, Type residual, Type weight, Type y, bool stores_rstd = false);

}  // namespace rms_norm_binding
