// The types of elements by the names that Python has for them.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <rms_norm/arguments.cuh>

#include "instances.h"

namespace rms_norm_binding {

using float32 = float;
using float16 = __half;
using bfloat16 = __nv_bfloat16;

template <class T>
::rms_norm::Tensor<T> tensor_of(const Rows& rows) {
  return {static_cast<T*>(rows.data), {rows.stride, rows.heads, rows.head_stride}};
}

}  // namespace rms_norm_binding
