// transpose_v0: one thread per element. Lanes go along a row on one side, so on the other side they go down a column.
//
// The stage reads along rows and writes down columns; its control reads down columns and writes along rows. It leaves:
// the lanes of one request are a whole row of the matrix apart, so each touches a sector of its own and uses 4 of its
// 32 bytes (counter: sectors per request, 32 where 4 would do).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v0 {

constexpr int kTile = 32;  // a block covers 32 × 32 elements with as many threads

// Lanes differ in threadIdx.x. tiles_across: tiles side by side in the input.
template <bool kStridedReads>
__global__ void __launch_bounds__(kTile* kTile)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int64_t row = first_row + (kStridedReads ? threadIdx.x : threadIdx.y);
  const int64_t col = first_col + (kStridedReads ? threadIdx.y : threadIdx.x);
  if (row < rows && col < cols) output[col * rows + row] = input[row * cols + col];
}

template <bool kStridedReads>
void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<kStridedReads><<<static_cast<unsigned>(wide * tall), dim3(kTile, kTile), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(wide));
}

inline const Stage<Transpose> stage{
    "transpose_v0", "one thread per element, strided writes", launch<false>, {0, Transpose::one_block_per_tile<kTile>}};

}  // namespace ladder::transpose::transpose_v0

LADDER_MAIN(ladder::transpose::transpose_v0::stage)
