// tile_rows_in_grid_y: blockIdx.y counts the rows of tiles. gridDim.y ends at 65535, so a matrix of more than two
// million rows is never transposed, and only a program that checks the launch learns of it.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::tile_rows_in_grid_y {

using parts::kThreadRows;
using parts::kTile;

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t first_row = int64_t{blockIdx.y} * kTile, first_col = int64_t{blockIdx.x} * kTile;
  const int x = threadIdx.x;
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];
  __syncthreads();
  for (int y = threadIdx.y; y < kTile; y += kThreadRows)
    if (first_col + y < cols && first_row + x < rows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(blocks_for(cols, kTile)), static_cast<unsigned>(blocks_for(rows, kTile)));
  if (grid.x == 0 || grid.y == 0) return;
  transpose_kernel<<<grid, dim3(kTile, kThreadRows), 0, stream>>>(input, output, rows, cols);  // the fault
}

inline const Mutant<Transpose> mutant{
    "tile_rows_in_grid_y", "more rows of tiles than gridDim.y can count", launch, "cudaErrorInvalid", Shows::anywhere,
    {{65536 * 32 + 1, 1}}};

}  // namespace ladder::transpose::mutants::tile_rows_in_grid_y
