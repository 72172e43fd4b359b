// unpaired_in_place: transpose_v3 on a matrix in its own memory. Each block moves one tile to where another block's
// tile lies. Which of the two reads first is left to chance.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::unpaired_in_place {

using parts::kThreadRows;
using parts::kTile;

// The fault: input and output are one matrix.
__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols, unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_col + y < cols && first_row + x < rows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
}

constexpr TransposeInPlace::Launch launch = parts::one_block_per_tile<transpose_kernel>;

inline const Mutant<TransposeInPlace> mutant{"unpaired_in_place",
                                             "a block overwrites a tile that another block has yet to read", launch,
                                             "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::transpose::mutants::unpaired_in_place
