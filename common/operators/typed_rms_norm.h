// RMSNorm of rows of any types, alone or with a residual that is added first:
//   kept = x, or residual_out = x + residual, added in float32 and rounded to the residual's type;
//   y = kept / sqrt(mean(kept²) + eps) · (weight offset + weight).
#pragma once
#include <optional>

#include "common/stage.h"
#include "common/types.h"

namespace ladder {

struct Answers;

struct TypedRmsNorm {
  struct Types {
    Type x, weight, y;
    std::optional<Type> residual = {};  // residual_out has the same type
  };
  static const Operator& get(Types types);

  // The tensors, rows × cols each, the weight cols elements or nullptr; without a residual there are the first three.
  enum { kX, kWeight, kY, kResidual, kResidualOut };
  // gemma (0): all in float32, one rounding at the end; llama (1): the normalized value is rounded to y's type, then
  // multiplied by the weight.
  enum { kEps, kWeightOffset, kLlama };
  using Launch = void (*)(const Arguments& arguments, cudaStream_t stream);

  // The largest relative error of what a correct kernel computes in float32 before it rounds to the output's type.
  static double float_error(int64_t cols);

  // What is right for `count` elements of a row of y, whose 1 / sqrt(mean(kept²) + eps) is rstd. weight may be nullptr.
  static void answers(Type y, int64_t count, const float* kept, double rstd, const float* weight, const double* scalars,
                      double float_error, const Answers& to);
};

}  // namespace ladder
