// 02_warp_multirow: a warp computes the outputs of four rows of one column. Its lanes take a block each, every 32nd,
// multiply four numbers with one instruction, dp4a, and add up with shuffles.
//
// It removes the bytes, 9 loads of 2 bytes a block of weights for 17, and reads each block of x once for four rows.
// It leaves: lanes that are 18 and 36 bytes apart (counter: sectors per request), x read from global memory by each of
// the 16 warps, and every weight read once per column.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::warp_multirow {

constexpr int kBlockSize = 512, kWarps = kBlockSize / 32;

__device__ inline float scale_of(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

// 16 (q - 8) of four nibbles each, as signed bytes: in 4 bits, q with its top bit flipped is q - 8 in two's complement.
__device__ inline int low_nibbles(uint32_t word) { return static_cast<int>((word << 4 & 0xf0f0f0f0u) ^ 0x80808080u); }
__device__ inline int high_nibbles(uint32_t word) { return static_cast<int>((word & 0xf0f0f0f0u) ^ 0x80808080u); }

// 16 times the sum of the products of a block, whose bytes are aligned to 2.
__device__ inline int dot_of_16(const block_q4_0& weights, const int (&x)[8]) {
  const auto* halves = reinterpret_cast<const uint16_t*>(weights.qs);
  int sum = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const uint32_t word = halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16;
    sum = __dp4a(low_nibbles(word), x[j], sum);
    sum = __dp4a(high_nibbles(word), x[4 + j], sum);
  }
  return sum;
}

template <int ROWS>
__global__ void __launch_bounds__(kBlockSize)
    gemm_q4_0_q8_1_warp_multirow_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                        float* __restrict__ y, int64_t m, int64_t k) {
  const int lane = threadIdx.x % 32;
  const int64_t first = (int64_t{blockIdx.y} * kWarps + threadIdx.x / 32) * ROWS;
  const int64_t blocks = k / kBlock;
  const block_q8_1* column = x + blockIdx.x * blocks;

  float sums[ROWS] = {};
  for (int64_t b = lane; b < blocks; b += 32) {
    const auto* words = reinterpret_cast<const int*>(column[b].qs);
    int numbers[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) numbers[j] = words[j];
    const float d = scale_of(column[b].d) / 16.0f;
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      if (first + r >= m) break;
      const block_q4_0& weights = w[(first + r) * blocks + b];
      sums[r] += scale_of(weights.d) * d * static_cast<float>(dot_of_16(weights, numbers));
    }
  }
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const float sum = warp_reduce_sum(sums[r]);
    if (lane == 0 && first + r < m) y[blockIdx.x * m + first + r] = sum;
  }
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, 4 * kWarps)));
  gemm_q4_0_q8_1_warp_multirow_kernel<4><<<grid, kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Stage<Q4GemmBlocks> stage{
    "02_warp_multirow", "a warp computes four rows, with dp4a", launch, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::warp_multirow
