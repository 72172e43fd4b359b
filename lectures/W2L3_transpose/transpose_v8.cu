// transpose_v8: a square matrix in its own memory. A block takes a tile and its mirror image at the diagonal, reads
// both, and writes each where the other was. No other block reads or writes these two tiles, so the barrier of the
// block is all the order that is needed. A tile on the diagonal is its own mirror image.
//
// There are n (n + 1) / 2 pairs of n × n tiles. Rows r and n - 1 - r of the triangle on and above the diagonal have n +
// 1 pairs together, so the triangle is a rectangle of n / 2 rows of n + 1, and a block finds its pair by a division.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v8 {

constexpr int kTile = 32;
constexpr int kThreadRows = 8;
constexpr int kHeld = kTile / kThreadRows;  // elements of each of the two tiles that a thread moves

// size: rows and columns of the matrix; tiles: an even number of tiles side by side, at least as many as cover it.
__global__ void __launch_bounds__(kTile* kThreadRows) transpose_kernel(float* matrix, int64_t size, unsigned tiles) {
  __shared__ float upper[kTile][kTile + 1], lower[kTile][kTile + 1];
  const unsigned r = blockIdx.x / (tiles + 1), c = blockIdx.x % (tiles + 1);
  const int64_t first_row = int64_t{c > r ? r : tiles - 1 - r} * kTile;
  const int64_t first_col = int64_t{c > r ? c - 1 : tiles - 1 - r + c} * kTile;
  const bool on_diagonal = first_row == first_col;
  const int x = threadIdx.x, y = threadIdx.y;

  float above[kHeld] = {}, below[kHeld] = {};
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    const int i = y + k * kThreadRows;
    if (first_row + i < size && first_col + x < size) above[k] = matrix[(first_row + i) * size + first_col + x];
    if (!on_diagonal && first_col + i < size && first_row + x < size)
      below[k] = matrix[(first_col + i) * size + first_row + x];
  }
#pragma unroll
  for (int k = 0; k < kHeld; ++k) {
    upper[y + k * kThreadRows][x] = above[k];
    lower[y + k * kThreadRows][x] = below[k];
  }
  __syncthreads();  // both tiles have been read, so both may be overwritten
#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows) {
    if (first_col + y + i < size && first_row + x < size)
      matrix[(first_col + y + i) * size + first_row + x] = upper[x][y + i];
    if (!on_diagonal && first_row + y + i < size && first_col + x < size)
      matrix[(first_row + y + i) * size + first_col + x] = lower[x][y + i];
  }
}

// input and output are the same memory.
inline void launch(const float*, float* output, int64_t rows, int64_t, cudaStream_t stream) {
  const int64_t tiles = blocks_for(rows, 2 * kTile) * 2;
  if (tiles == 0) return;
  const auto blocks = static_cast<unsigned>(tiles / 2 * (tiles + 1));
  transpose_kernel<<<blocks, dim3(kTile, kThreadRows), 0, stream>>>(output, rows, static_cast<unsigned>(tiles));
}

inline const Stage<TransposeInPlace> stage{
    "transpose_v8", "a square matrix in place, tiles in pairs", launch, {0, TransposeInPlace::is_square}};

}  // namespace ladder::transpose::transpose_v8

LADDER_MAIN(ladder::transpose::transpose_v8::stage)
