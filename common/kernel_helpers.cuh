// Device functions that more than one stage uses. The stage that introduces a function has it in its own file:
// warp_reduce_sum and block_reduce_sum in 05_warp_shuffle, aligned_for_float4 in 04_hybrid, sum_of_squares and scaled
// in 07_registers, row_sum in 08_critical_path and 10_block_shapes of the matrix ladder.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ladder {

// Every lane gets the sum of its warp's 32 values. All 32 lanes must call it.
__device__ inline float warp_reduce_sum(float value) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Every thread gets the sum of its block's values, for one-dimensional blocks of kBlockSize threads, a multiple of 32
// up to 1024. One block barrier; a kernel that calls it twice needs another barrier between the calls.
template <int kBlockSize>
__device__ inline float block_reduce_sum(float value) {
  constexpr int kWarps = kBlockSize / 32;
  static_assert(kBlockSize % 32 == 0 && kWarps >= 1 && kWarps <= 32, "whole warps, at most 32 of them");
  __shared__ float warp_sums[kWarps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;

  value = warp_reduce_sum(value);
  if (lane == 0) warp_sums[warp] = value;
  __syncthreads();
  return warp_reduce_sum(lane < kWarps ? warp_sums[lane] : 0.0f);
}

// Whether all three addresses may be accessed as float4. A null pointer counts as aligned.
__device__ inline bool aligned_for_float4(const float* a, const float* b, const float* c) {
  const auto bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c);
  return bits % sizeof(float4) == 0;
}

__device__ inline float sum_of_squares(float4 x) { return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w; }

__device__ inline float4 scaled(float4 x, float rstd, float4 weight) {
  return make_float4(x.x * rstd * weight.x, x.y * rstd * weight.y, x.z * rstd * weight.z, x.w * rstd * weight.w);
}

// Every thread gets the sum over its row's threads, which have the same threadIdx.y. blockDim.x is 32 or, in blocks of
// one row, a multiple of 128. warp_sums: 32 floats of shared memory, aligned to 16 bytes. A second call needs a barrier
// in between, or 32 other floats.
__device__ inline float row_sum(float value, float* warp_sums) {
  value = warp_reduce_sum(value);
  if (blockDim.x == 32) return value;
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (unsigned warp = 0; warp < blockDim.x / 32; warp += 4) {
    const float4 four = *reinterpret_cast<const float4*>(warp_sums + warp);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  return sum;
}

}  // namespace ladder
