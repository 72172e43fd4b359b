// transpose_v4: no padding. Row y keeps its elements in another order: element x lies at place x ^ y. A column of the
// tile then has one element in each bank, as with the padding, in 32 × 32 words and not one more (counter: 1 wavefront
// for a request either way).
//
// It leaves: a row of the tile is 128 bytes on each side of the copy; the next bytes of that row of the matrix belong
// to another block, which may run much later.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v4 {

constexpr int kTile = 32;
constexpr int kThreadRows = 8;  // of a block: a thread has every eighth row of the tile

__global__ void __launch_bounds__(kTile* kThreadRows)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  __shared__ float tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;

#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows)
    if (first_row + y + i < rows && first_col + x < cols)
      tile[y + i][x ^ (y + i)] = input[(first_row + y + i) * cols + first_col + x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows)
    if (first_col + y + i < cols && first_row + x < rows)
      output[(first_col + y + i) * rows + first_row + x] = tile[x][x ^ (y + i)];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(wide));
}

inline const Stage<Transpose> stage{
    "transpose_v4", "swizzled instead of padded", launch, {0, Transpose::one_block_per_tile<kTile>}};

}  // namespace ladder::transpose::transpose_v4

LADDER_MAIN(ladder::transpose::transpose_v4::stage)
