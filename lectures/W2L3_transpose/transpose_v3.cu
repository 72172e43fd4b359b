// transpose_v3: 256 threads for the same tile, four elements each. A thread asks for all four before it waits for the
// first, and there is a quarter of the threads to start, of the index arithmetic and of the warps at a barrier.
//
// It leaves: the padding, 128 of 4224 bytes that hold nothing. v4 shows that it can be avoided.
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v3 {

constexpr int kTile = 32;
constexpr int kThreadRows = 8;  // of a block: a thread has every eighth row of the tile

__global__ void __launch_bounds__(kTile* kThreadRows)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  __shared__ float tile[kTile][kTile + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;

#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows)
    if (first_row + y + i < rows && first_col + x < cols)
      tile[y + i][x] = input[(first_row + y + i) * cols + first_col + x];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kThreadRows)
    if (first_col + y + i < cols && first_row + x < rows)
      output[(first_col + y + i) * rows + first_row + x] = tile[x][y + i];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(wide));
}

inline const Stage<Transpose> stage{
    "transpose_v3", "four elements per thread, 32 × 8 threads", launch, {0, Transpose::one_block_per_tile<kTile>}};

}  // namespace ladder::transpose::transpose_v3

LADDER_MAIN(ladder::transpose::transpose_v3::stage)
