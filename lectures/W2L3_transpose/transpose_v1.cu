// transpose_v1: the block turns a tile of 32 × 32 elements in shared memory. Its threads fill the tile along rows of
// the input and empty it along rows of the output, so both sides of global memory are contiguous (counter: 4 sectors
// per request). The thread that takes an element out is not the one that put it in, so there is a barrier in between.
//
// It leaves: the 32 lanes that read a column of the tile are 32 words apart, all in one bank, which serves them one
// after the other (counter: 32 wavefronts for a request).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v1 {

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  __shared__ float tile[kTile][kTile];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;

  if (first_row + y < rows && first_col + x < cols) tile[y][x] = input[(first_row + y) * cols + first_col + x];
  __syncthreads();
  if (first_col + y < cols && first_row + x < rows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kTile), 0, stream>>>(input, output, rows, cols,
                                                                                          static_cast<unsigned>(wide));
}

inline const Stage<Transpose> stage{"transpose_v1",
                                    "a tile in shared memory; its columns are in one bank",
                                    launch,
                                    {0, Transpose::one_block_per_tile<kTile>}};

}  // namespace ladder::transpose::transpose_v1

LADDER_MAIN(ladder::transpose::transpose_v1::stage)
