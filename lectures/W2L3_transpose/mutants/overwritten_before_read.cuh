// overwritten_before_read: in place, with one tile in shared memory where two are needed. The tile goes to its mirror
// image, and only then does the block read what was there.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::overwritten_before_read {

using parts::kThreadRows;
using parts::kTile;

__global__ void transpose_kernel(float* matrix, int64_t size, unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
  const unsigned r = blockIdx.x / tiles_across, c = blockIdx.x % tiles_across;
  if (r > c) return;
  const int x = threadIdx.x;
  for (int turn = 0; turn < (r == c ? 1 : 2); ++turn) {
    const int64_t first_row = int64_t{turn == 0 ? r : c} * kTile, first_col = int64_t{turn == 0 ? c : r} * kTile;
    for (int y = threadIdx.y; y < kTile; y += kThreadRows)
      if (first_row + y < size && first_col + x < size) tile[y][x] = matrix[(first_row + y) * size + first_col + x];
    __syncthreads();
    for (int y = threadIdx.y; y < kTile; y += kThreadRows)
      if (first_col + y < size && first_row + x < size)
        matrix[(first_col + y) * size + first_row + x] = tile[x][y];  // the fault: the second turn has yet to read it
    __syncthreads();
  }
}

inline void launch(const float*, float* output, int64_t rows, int64_t, cudaStream_t stream) {
  const int64_t tiles = blocks_for(rows, kTile);
  if (tiles == 0) return;
  transpose_kernel<<<static_cast<unsigned>(tiles * tiles), dim3(kTile, kThreadRows), 0, stream>>>(
      output, rows, static_cast<unsigned>(tiles));
}

inline const Mutant<TransposeInPlace> mutant{"overwritten_before_read", "a tile is overwritten before it has been read",
                                             launch, "elements wrong, first at"};

}  // namespace ladder::transpose::mutants::overwritten_before_read
