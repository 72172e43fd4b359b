// A call of the header's norms that end in 8 bits, as call.h has them of its other norms.
#pragma once
#include <rms_norm/quantize.cuh>

#include "call.h"

namespace rms_norm_binding {

using e4m3 = __nv_fp8_e4m3;
using e5m2 = __nv_fp8_e5m2;
using int8 = int8_t;
enum Code { kE4m3, kE5m2, kInt8 };
constexpr int kCodes = 3;
template <class Q>
constexpr Code code_of = std::is_same_v<Q, e4m3>   ? kE4m3
                         : std::is_same_v<Q, e5m2> ? kE5m2
                                                   : kInt8;

struct QuantizedCall : Call {
  Tensor q{};
  rms_norm::Quantization how;
};
using QuantizedInstance = cudaError_t (*)(const QuantizedCall&, cudaStream_t, const char** refusal);

// Where the instance stands for x, the residual, the weight and y of one type; nullptr if it is not compiled.
QuantizedInstance& quantized_instance(Type x, bool adds, Code code);

}  // namespace rms_norm_binding
