// 05_warp_shuffle: the block's sum goes through registers, with one float per warp in shared memory.
//
// It removes the tree of 02_reduction5 and 04_hybrid: a shuffle hands a register to another lane, so a warp adds its 32
// sums in five steps without memory and without a barrier. Then 8 warps leave 8 floats, and one barrier per row is all
// that remains (9 in 02, 4 in 04). Loads and stores are 02's again, 4 bytes per lane: against 02 one thing changes.
// It leaves: four times the load and store instructions that the same bytes need (counter: global load requests).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/rms_norm.h"

namespace ladder::matrix::warp_shuffle {

constexpr int kWarpSize = 32;

// Every lane gets the sum of its warp's 32 values.
__device__ inline float warp_reduce_sum(float value) {
#pragma unroll
  for (int mask = kWarpSize / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

// Every thread gets the sum of its block's values. A kernel may call it once: a second call needs a barrier in between.
template <int kBlockSize>
__device__ float block_reduce_sum(float value) {
  constexpr int kWarps = kBlockSize / kWarpSize;
  __shared__ float warp_sums[kWarps];
  const int lane = threadIdx.x % kWarpSize;
  const int warp = threadIdx.x / kWarpSize;

  value = warp_reduce_sum(value);
  if (lane == 0) warp_sums[warp] = value;
  __syncthreads();
  // Each warp adds the 8 sums for itself. Otherwise 7 idle warps would wait for the eighth at a second barrier.
  return warp_reduce_sum(lane < kWarps ? warp_sums[lane] : 0.0f);
}

template <int kBlockSize>
__global__ void rms_norm_kernel_fast(const float* __restrict__ input, const float* __restrict__ weight,
                                     float* __restrict__ output, int64_t cols, float eps) {
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  float sum = 0.0f;
#pragma unroll 8
  for (int64_t i = tid; i < cols; i += kBlockSize) sum += row_input[i] * row_input[i];

  const float rstd = rsqrtf(block_reduce_sum<kBlockSize>(sum) / static_cast<float>(cols) + eps);
#pragma unroll 8
  for (int64_t i = tid; i < cols; i += kBlockSize) {
    const float normalized = row_input[i] * rstd;
    row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
  }
}

template <int kBlockSize>
void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
            cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  rms_norm_kernel_fast<kBlockSize>
      <<<static_cast<unsigned>(rows), kBlockSize, 0, stream>>>(input, weight, output, cols, eps);
}

inline const Stage<RmsNorm> stage{
    "05_warp_shuffle", "warp shuffles, one barrier per row", launch<256>, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::warp_shuffle
