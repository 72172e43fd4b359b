// Weights of 4 bits and x as float16, for the stages of the q4_gemm ladder that use wgmma. All numbers are whole and
// not above 128 in magnitude, so that float16 holds them exactly. Scales stay apart.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "assignment2/q4_gemm/wgmma.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm {

// TILE_N columns of x, 64 k: eight panels of 8 k, with 16 bytes for each column. Panel 4 b + i has, at place 2 t and
// 2 t + 1, the two numbers of block b that stand beside pair i of the word that lane t has of a row.
template <int TILE_N>
struct HalfTile {
  uint4 panels[8][TILE_N];
  float scales[2][TILE_N];  // of the two blocks
};

// The scratch memory of the operator has room for x.
static_assert(sizeof(HalfTile<16>) == 16 * Q4GemmFragments::kScratchOfX * sizeof(float), "34 floats a column");

// What a lane gives to the two wgmma of a block: words[h] has eight numbers of row g + 8 h. 0x6400 is 1024, of which
// the last bit counts 1: with q in the lowest four bits it is 1024 + q, with q in the next four 1024 + 16 q. No
// rounding.
__device__ inline void half_fragments(const uint32_t (&words)[2], uint32_t (&a)[2][4]) {
  const __half2 minus_1032 = half2_of(0xe408e408u), minus_72 = half2_of(0xd480d480u), sixteenth = half2_of(0x2c002c00u);
#pragma unroll
  for (int step = 0; step < 2; ++step)
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const uint32_t word = words[h] >> 8 * step;
      a[step][h] = bits_of(__hadd2(half2_of((word & 0x000f000fu) | 0x64006400u), minus_1032));
      a[step][2 + h] = bits_of(__hfma2(half2_of((word & 0x00f000f0u) | 0x64006400u), sixteenth, minus_72));
    }
}

// Adds the products of a block times their scales: d has those of rows g and g + 8, of_x those of the columns.
template <int TILE_N>
__device__ void add_scaled(uint32_t d, const float (&of_x)[TILE_N], const float (&products)[TILE_N / 2],
                           float (&sums)[TILE_N / 2]) {
  const float2 of_rows = __half22float2(half2_of(d));
#pragma unroll
  for (int j = 0; j < TILE_N / 8; ++j) {
    const float2 of_columns = *reinterpret_cast<const float2*>(&of_x[8 * j + threadIdx.x % 4 * 2]);
    sums[4 * j] += of_rows.x * of_columns.x * products[4 * j];
    sums[4 * j + 1] += of_rows.x * of_columns.y * products[4 * j + 1];
    sums[4 * j + 2] += of_rows.y * of_columns.x * products[4 * j + 2];
    sums[4 * j + 3] += of_rows.y * of_columns.y * products[4 * j + 3];
  }
}

// A thread converts eight neighbouring numbers of a column, a warp the same block of eight columns. What lies outside
// of x is zero.
template <int TILE_N>
__global__ void __launch_bounds__(256)
    convert_to_half_kernel(const block_q8_1* __restrict__ x, HalfTile<TILE_N>* __restrict__ to, int64_t n, int64_t k) {
  const int64_t chunks = (k + 63) / 64, warp = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  const int64_t block = warp % (2 * chunks), column = warp / (2 * chunks) * 8 + threadIdx.x % 32 / 4;
  if (column >= (n + TILE_N - 1) / TILE_N * TILE_N) return;
  const int t = threadIdx.x % 4, place = static_cast<int>(column % TILE_N), b = static_cast<int>(block % 2);
  HalfTile<TILE_N>& tile = to[column / TILE_N * chunks + block / 2];

  float numbers[8] = {}, scale = 0.0f;
  if (column < n && block * kBlock < k) {
    const block_q8_1& from = x[column * (k / kBlock) + block];
    const auto* words = reinterpret_cast<const uint32_t*>(from.qs) + 2 * t;
    const uint32_t eight[2] = {words[0], words[1]};
#pragma unroll
    for (int i = 0; i < 8; ++i) numbers[i] = static_cast<float>(static_cast<int8_t>(eight[i / 4] >> i % 4 * 8));
    scale = scale_of(from.d);
  }
  constexpr int kFirst[4] = {0, 4, 1, 5};  // of each pair; the second is two farther
#pragma unroll
  for (int i = 0; i < 4; ++i)
    reinterpret_cast<uint32_t*>(&tile.panels[4 * b + i][place])[t] =
        bits_of(__floats2half2_rn(numbers[kFirst[i]], numbers[kFirst[i] + 2]));
  if (t == 0) tile.scales[b][place] = scale;
}

template <int TILE_N>
void convert_to_half(const block_q8_1* x, HalfTile<TILE_N>* to, int64_t n, int64_t k, cudaStream_t stream) {
  const int64_t warps = blocks_for(n, TILE_N) * (TILE_N / 8) * blocks_for(k, 64) * 2;
  convert_to_half_kernel<TILE_N><<<static_cast<unsigned>(blocks_for(warps, 8)), 256, 0, stream>>>(x, to, n, k);
}

}  // namespace ladder::q4_gemm
