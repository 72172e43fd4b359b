// missing_barrier: transpose_v3 without the barrier. A thread takes an element out of the tile that another one may not
// have put in yet.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::missing_barrier {

using parts::kThreadRows;
using parts::kTile;

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols, unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];
  // the fault: no __syncthreads()
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_col + y < cols && first_row + x < rows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
}

constexpr Transpose::Launch launch = parts::one_block_per_tile<transpose_kernel>;

inline const Mutant<Transpose> mutant{"missing_barrier", "no barrier between filling and emptying the tile", launch,
                                      "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::transpose::mutants::missing_barrier
