// Device functions that several stages of the q4_gemm ladder use. 02_warp_multirow teaches them and has them in its own
// file.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/q4_blocks.h"

namespace ladder::q4_gemm {

__device__ inline float scale_of(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

// 16 (q - 8) of four nibbles each, as signed bytes: in 4 bits, q with its top bit flipped is q - 8 in two's complement.
__device__ inline int low_nibbles(uint32_t word) { return static_cast<int>((word << 4 & 0xf0f0f0f0u) ^ 0x80808080u); }
__device__ inline int high_nibbles(uint32_t word) { return static_cast<int>((word & 0xf0f0f0f0u) ^ 0x80808080u); }

// 16 times the sum of the products of a block: qs are its 16 bytes, x the 32 numbers of the other block.
__device__ inline int dot_of_16(const uint32_t (&qs)[4], const int* x) {
  int sum = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    sum = __dp4a(low_nibbles(qs[j]), x[j], sum);
    sum = __dp4a(high_nibbles(qs[j]), x[4 + j], sum);
  }
  return sum;
}

// Every one of `lanes` neighbouring lanes, a power of two, gets the sum of their values. All 32 lanes must call it.
template <int lanes>
__device__ inline float sum_of_lanes(float value) {
#pragma unroll
  for (int mask = lanes / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  return value;
}

}  // namespace ladder::q4_gemm
