// The kernels of the tensor cores: 64 × 256 elements of the output per block, computed again and again.
#pragma once

#include <cstdint>

#include "common/launch.h"
#include "common/operators/repeated.h"
#include "tensor_cores.cuh"

namespace ladder::roofline {

constexpr int kRows = Products::kRows, kColumns = Products::kColumns, kWords = Products::kWords;

// An element of the block's tile, if the output has it. Two neighbours go together.
template <class Sum>
__device__ void store_two(Sum* output, int64_t n, int row, int column, Sum first, Sum second) {
  const int64_t i = (int64_t{blockIdx.x} * kRows + row) * kColumns + column;
  if (i < n) output[i] = first;
  if (i + 1 < n) output[i + 1] = second;
}

// 06 and 08: 16 warps, each with 32 × 32 elements: 8 independent sums of 16 × 8. Its parts of A and B stay in
// registers, so that only the tensor cores have work (counter: stalls on math pipe throttle).
template <class Number, class Sum>
__global__ void __launch_bounds__(512) mma_kernel(const uint32_t* __restrict__ a, const uint32_t* __restrict__ b,
                                                  Sum* __restrict__ output, int64_t n, int repeats) {
  constexpr int kSteps = kWords / 8;  // a step takes 8 words of each row of A and column of B
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first_row = warp / 8 * 32, first_column = warp % 8 * 32;

  uint32_t held_a[kSteps][2][4], held_b[kSteps][4][2];
#pragma unroll
  for (int step = 0; step < kSteps; ++step) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        const int64_t row = int64_t{blockIdx.x} * kRows + first_row + 16 * i + lane / 4 + word % 2 * 8;
        held_a[step][i][word] = a[row * kWords + step * 8 + word / 2 * 4 + lane % 4];
      }
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int word = 0; word < 2; ++word)
        held_b[step][j][word] = b[(first_column + 8 * j + lane / 4) * kWords + step * 8 + word * 4 + lane % 4];
  }

  Sum sums[2][4][4] = {};
  for (int turn = 0; turn < repeats; ++turn) {
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j) mma<Number>(sums[i][j], held_a[step][i], held_b[step][j]);
  }

#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        store_two(output, n, first_row + 16 * i + 8 * half + lane / 4, first_column + 8 * j + lane % 4 * 2,
                  sums[i][j][2 * half], sums[i][j][2 * half + 1]);
}

// 07 and 09: one warpgroup of 128 threads, whose instruction reads A and B from shared memory and runs on while the
// warps issue the next. Three blocks per SM keep the tensor cores busy where one waits (counter: active cycles).
template <class Number, class Sum>
__global__ void __launch_bounds__(128) wgmma_kernel(const uint32_t* __restrict__ a, const uint32_t* __restrict__ b,
                                                    Sum* __restrict__ output, int64_t n, int repeats) {
  __shared__ alignas(128) uint4 panels_a[kWords / 4][kRows], panels_b[kWords / 4][kColumns];
  const uint4* rows = reinterpret_cast<const uint4*>(a) + int64_t{blockIdx.x} * kRows * (kWords / 4);
  const uint4* columns = reinterpret_cast<const uint4*>(b);
  for (int i = threadIdx.x; i < kRows * kWords / 4; i += 128)
    panels_a[i / kRows][i % kRows] = rows[i % kRows * (kWords / 4) + i / kRows];
  for (int i = threadIdx.x; i < kColumns * kWords / 4; i += 128)
    panels_b[i / kColumns][i % kColumns] = columns[i % kColumns * (kWords / 4) + i / kColumns];
  show_to_tensor_cores();
  __syncthreads();

  Sum sums[128] = {};
  for (int turn = 0; turn < repeats; ++turn) {
    begin_wgmma();
#pragma unroll
    for (int step = 0; step < kWords / 8; ++step) wgmma<Number>(sums, panels_a[2 * step], panels_b[2 * step]);
    end_wgmma_but_one();
  }
  end_wgmma(sums);

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int j = 0; j < kColumns / 8; ++j)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      store_two(output, n, warp * 16 + 8 * half + lane / 4, 8 * j + lane % 4 * 2, sums[4 * j + 2 * half],
                sums[4 * j + 2 * half + 1]);
}

template <class Number, class Sum>
void launch_mma(const uint32_t* a, const uint32_t* b, Sum* output, int64_t n, int64_t repeats, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, Products::kTile));
  if (blocks > 0) mma_kernel<Number><<<blocks, 512, 0, stream>>>(a, b, output, n, static_cast<int>(repeats));
}

template <class Number, class Sum>
void launch_wgmma(const uint32_t* a, const uint32_t* b, Sum* output, int64_t n, int64_t repeats, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(blocks_for(n, Products::kTile));
  if (blocks > 0) wgmma_kernel<Number><<<blocks, 128, 0, stream>>>(a, b, output, n, static_cast<int>(repeats));
}

inline const char* without_wgmma(const Shape& shape) {
  static const bool has = has_wgmma();
  return has ? Products::rounds(shape)
             : "needs Hopper's own instructions: a GPU of compute capability 9.0, and a build with ARCHS=90a";
}

}  // namespace ladder::roofline
