// edge_not_guarded: on the way out only the rows of the output are checked. What a tile has beyond the end of a row
// goes to the beginning of the next one, and from the last row past the end of the matrix.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::edge_not_guarded {

using parts::kThreadRows;
using parts::kTile;

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols, unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_col + y < cols) output[(first_col + y) * rows + first_row + x] = tile[x][y];  // the fault
}

constexpr Transpose::Launch launch = parts::one_block_per_tile<transpose_kernel>;

inline const Mutant<Transpose> mutant{"edge_not_guarded", "the last tile of a row writes past the row's end", launch,
                                      "wrote outside its output"};

}  // namespace ladder::transpose::mutants::edge_not_guarded
