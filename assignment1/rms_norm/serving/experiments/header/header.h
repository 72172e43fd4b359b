// The production header behind the interface of the stages, for the experiment `grid`. nvcc needs a minute for it, so
// each type is a file of its own, and the CPU device, which times nothing, leaves it out (tests/headers/rms_norm checks
// it there).
#pragma once
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving {

void header_half(const ServingCall& call, cudaStream_t stream);
void header_bfloat16(const ServingCall& call, cudaStream_t stream);
void header_float(const ServingCall& call, cudaStream_t stream);

inline void header(const ServingCall& call, cudaStream_t stream) {
  if (call.dtype == Dtype::half) return header_half(call, stream);
  if (call.dtype == Dtype::bfloat16) return header_bfloat16(call, stream);
  header_float(call, stream);
}

}  // namespace ladder::serving
