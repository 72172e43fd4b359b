// RMSNorm as a serving engine calls it, one type for everything (half, bfloat16 or float) and a stride between rows:
//   rms_norm:            out = input / sqrt(mean(input²) + epsilon) · weight
//   fused_add_rms_norm:  residual = input + residual, and input = the norm of the new residual, both in place
#pragma once
#include "common/operators/dtype.h"
#include "common/operators/typed_rms_norm.h"
#include "common/stage.h"

namespace ladder {

// num_tokens rows of hidden_size elements. Rows of input begin input_stride elements apart; out and residual have no
// gaps. Pointers are aligned to an element and no more. For fused_add_rms_norm out is input; for rms_norm there is no
// residual.
struct ServingCall {
  void* out;
  void* input;
  int64_t input_stride;
  void* residual;
  const void* weight;
  float epsilon;
  int64_t num_tokens, hidden_size;
  Dtype dtype;
};

// llama: the normalized value is rounded to the type, multiplied by the weight and rounded again, as in the original
// engine. Otherwise it is rounded once, at the end.
template <bool adds_residual, bool llama>
struct ServingNorm {
  using Launch = void (*)(const ServingCall& call, cudaStream_t stream);
  static constexpr int kRowGap = TypedRmsNorm::kLlama + 1;  // of the scalars: input_stride - hidden_size
  static const Operator& get();

  static const char* refuses(const Shape& shape) {
    return shape[0] > INT32_MAX ? "more tokens than a grid has blocks for; give fewer --num-tokens" : nullptr;
  }
  static const char* refuses_float(const Shape& shape) {
    if (shape[2] == static_cast<int64_t>(Dtype::float32))
      return "its vectors hold half or bfloat16, as in the original; give another --dtype, or run 07_generic";
    return refuses(shape);
  }
};

template <bool adds_residual, bool llama>
void call(ServingNorm<adds_residual, llama>, void (*launch)(const ServingCall&, cudaStream_t),
          const Arguments& arguments, cudaStream_t stream);

using RmsNormServing = ServingNorm<false, true>;
using FusedAddRmsNorm = ServingNorm<true, true>;
using FusedAddRmsNormOnce = ServingNorm<true, false>;

}  // namespace ladder
