// The header for programs that call it in many files. Each instance of forward() or fused_add_rms_norm() takes nvcc
// long and makes the program larger; README.md says by how much. This file declares the instances of the usual types:
// float, __half and __nv_bfloat16, where x, residual, weight and y have the same one. usual_types.cu defines them;
// compile it once and link it. Other mixtures of types are still compiled where they are used. nvcc compiles all of it:
// the kernels stand in the header.
//
//   #include <rms_norm/usual_types.cuh>        instead of rms_norm.cuh
//   nvcc -std=c++17 -Iinclude -c include/rms_norm/usual_types.cu
#pragma once

#include "rms_norm.cuh"

#ifndef RMS_NORM_INSTANTIATE
#define RMS_NORM_INSTANTIATE extern template
#endif

namespace rms_norm::detail {

#define RMS_NORM_OF_TYPE(T)                                                                                      \
  RMS_NORM_INSTANTIATE cudaError_t run<DefaultPolicy>(const Call<T, void, T, T>&, const Options&, cudaStream_t); \
  RMS_NORM_INSTANTIATE cudaError_t run<DefaultPolicy>(const Call<T, T, T, T>&, const Options&, cudaStream_t);

RMS_NORM_OF_TYPE(float)
RMS_NORM_OF_TYPE(__half)
RMS_NORM_OF_TYPE(__nv_bfloat16)
#undef RMS_NORM_OF_TYPE

}  // namespace rms_norm::detail
