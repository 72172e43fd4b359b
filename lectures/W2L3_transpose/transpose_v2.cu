// transpose_v2: one more column in the tile, which is not used. The elements of a column are 33 words apart, and each
// lies in a bank of its own (counter: 1 wavefront for a request, as for a row).
//
// It leaves: a thread has one element, so one load of 4 bytes in flight, and a block of 1024 threads waits for the
// slowest of its warps at the barrier (counter: stalled on global memory).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v2 {

constexpr int kTile = 32;

__global__ void __launch_bounds__(kTile* kTile)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
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

inline const Stage<Transpose> stage{
    "transpose_v2", "a column of padding: 33 words from row to row", launch, {0, Transpose::one_block_per_tile<kTile>}};

}  // namespace ladder::transpose::transpose_v2

LADDER_MAIN(ladder::transpose::transpose_v2::stage)
