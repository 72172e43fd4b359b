// A call of the norm, by whatever way its tensors came.
#pragma once
#include <cuda_runtime_api.h>

#include "arrays.h"

namespace rms_norm_binding {

// nullptr where there is none.
struct Tensors {
  const DLTensor *x, *residual, *residual_out, *weight, *y;
};

// y = the norm of x, or with a residual of residual_out = x + residual. Finds the workspace by itself. Throws a
// tvm::ffi::Error with a sentence for what is refused. Elements of `bfloat16_code` with 16 bits are bfloat16.
void norm(const Tensors& tensors, rms_norm::Options options, cudaStream_t stream,
          DLDataTypeCode bfloat16_code = kDLBfloat);

}  // namespace rms_norm_binding
