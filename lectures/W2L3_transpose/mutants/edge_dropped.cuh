// edge_dropped: as many tiles as fit into the matrix. What is left over at the right and at the bottom is not moved.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::edge_dropped {

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
  const int64_t wide = cols / kTile, tall = rows / kTile;  // the fault
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(wide));
}

inline const Mutant<Transpose> mutant{"edge_dropped", "the elements beyond the last whole tile are dropped", launch,
                                      "never written), first at"};

}  // namespace ladder::transpose::mutants::edge_dropped
