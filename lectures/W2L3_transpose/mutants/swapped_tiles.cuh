// swapped_tiles: the kernel numbers the tiles along the rows of the input, and the launcher says how many lie side by
// side in the output. In a square matrix the two are the same.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::swapped_tiles {

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
    if (first_col + y < cols && first_row + x < rows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(tall));  // the fault
}

inline const Mutant<Transpose> mutant{"swapped_tiles", "tiles are numbered by the wrong side of the matrix", launch,
                                      "never written), first at"};

}  // namespace ladder::transpose::mutants::swapped_tiles
