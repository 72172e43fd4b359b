// Device functions that more than one stage of the precision ladder uses. The stage that introduces a function has it
// in its own file: block_sum in 01_f32 and, for float16, in 03_f16_f16; aligned_for in 02_f32x4.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace ladder::precision {

// Threads of a block with one for each item of a row: whole warps, at most 1024 threads.
inline unsigned threads_for(int64_t items) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + 31) / 32 * 32, 32, 1024));
}

// Every thread gets the sum of its block's values, each addition rounded to Sum: float, __half or __nv_bfloat16. Blocks
// of one dimension and whole warps. One block barrier; a second call needs another barrier in between.
template <class Sum>
__device__ Sum block_sum(Sum value) {
  __shared__ Sum warp_sums[32];
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value = value + __shfl_xor_sync(0xffffffffu, value, mask);
  if (lane == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  Sum sum = lane < blockDim.x / 32 ? warp_sums[lane] : static_cast<Sum>(0.0f);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum = sum + __shfl_xor_sync(0xffffffffu, sum, mask);
  return sum;
}

// Whether all three rows may be accessed as vectors of type V. A null pointer counts as aligned.
template <class V>
__device__ bool aligned_for(const void* a, const void* b, const void* c) {
  const auto bits = reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c);
  return bits % sizeof(V) == 0;
}

}  // namespace ladder::precision
