// Device functions that more than one stage of the inference ladder uses. The stage that introduces a function has it
// in its own file: warp_reduce_sum and block_reduce_sum in 02_warp_shuffle, aligned_for in 01_before_f32.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ladder::inference {

// Lane 0 gets the sum of its warp's 32 values. All 32 lanes must call it.
__device__ inline float warp_reduce_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffffu, value, offset);
  return value;
}

// Every thread gets the sum of its block's BLOCK_DIM values. smem: a float for each warp. Two block barriers.
template <int BLOCK_DIM>
__device__ float block_reduce_sum(float value, float* smem) {
  constexpr int kWarps = BLOCK_DIM / 32;
  static_assert(BLOCK_DIM % 32 == 0 && kWarps <= 32, "whole warps, at most 32 of them");
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  value = warp_reduce_sum(value);
  if (lane == 0) smem[warp] = value;
  __syncthreads();
  if (warp == 0) {
    value = warp_reduce_sum(lane < kWarps ? smem[lane] : 0.0f);
    if (lane == 0) smem[0] = value;
  }
  __syncthreads();
  return smem[0];
}

// Whether a row and its result may be accessed as vectors of type X, and the weight as vectors of type W.
template <class X, class W>
__device__ bool aligned_for(const void* x, const void* weight, const void* y) {
  const auto rows = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(y);
  return rows % sizeof(X) == 0 && reinterpret_cast<uintptr_t>(weight) % sizeof(W) == 0;
}

}  // namespace ladder::inference
