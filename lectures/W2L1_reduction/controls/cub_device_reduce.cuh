// NVIDIA's own sum: cub::DeviceReduce, of the library CUB, which comes with the CUDA toolkit as headers.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"
#include "common/operators/sum.h"

#ifndef __SIMT__
#include <cub/device/device_reduce.cuh>
#endif

namespace ladder::reduction::controls {

#ifdef __SIMT__
inline const char* without_cub(const Shape&) {
  return "CUB comes with NVIDIA's CUDA toolkit and runs on a GPU; the CPU device has a form of its own instead";
}
inline void launch_cub(const float*, float*, float*, int64_t, cudaStream_t) {}
constexpr Requires kNeedsCub = {0, without_cub};
#else
// CUB's launches need scratch memory, too, and return an error if there is too little.
inline void launch_cub(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  size_t bytes = Sum::scratch_floats(n) * sizeof(float);
  CUDA_CHECK(cub::DeviceReduce::Sum(scratch, bytes, input, output, n, stream));
}
constexpr Requires kNeedsCub = {};
#endif

}  // namespace ladder::reduction::controls
