// colliding_swizzle: a rotation in place of an exclusive or, with 31 where 32 belongs. Elements 0 and 31 of a row lie
// in one place, so one of them is lost.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::colliding_swizzle {

using parts::kThreadRows;
using parts::kTile;

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols, unsigned tiles_across) {
  __shared__ float tile[kTile][kTile];
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int x = threadIdx.x;
  const auto place = [](int row, int col) { return (row + col) % (kTile - 1); };  // the fault
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_row + y < rows && first_col + x < cols)
      tile[y][place(y, x)] = input[(first_row + y) * cols + first_col + x];
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_col + y < cols && first_row + x < rows)
      output[(first_col + y) * rows + first_row + x] = tile[x][place(x, y)];
}

constexpr Transpose::Launch launch = parts::one_block_per_tile<transpose_kernel>;

inline const Mutant<Transpose> mutant{"colliding_swizzle", "a swizzle that puts two elements in one place", launch,
                                      "elements wrong, first at"};

}  // namespace ladder::transpose::mutants::colliding_swizzle
