// transpose_v5: a tile of 128 × 128, padded to 129 words a row. A block reads and writes 512 neighbouring bytes of each
// row, and a thread has 16 loads in flight. The tile takes 66 KB of shared memory: three blocks fit on an SM of Hopper.
// Tiles over the edge are cut once, in front of the loops, not with 64 bits at every element.
//
// It leaves: each load and store moves 4 bytes per lane, so 65,536 bytes take 512 requests each way (counter:
// requests).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::transpose_v5 {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int kBlocks = 1;  // GPUs before Ampere have neither threads nor shared memory for three
#else
constexpr int kBlocks = 3;  // per SM
#endif

// A block has kTile × kThreadRows threads; a thread has kHeld loads in flight, without a condition: seven predicates
// are all that a thread has, and they would hold up the eighth load.
template <int kTile, int kThreadRows, int kHeld>
__global__ void __launch_bounds__(kTile* kThreadRows, kBlocks)
    transpose_kernel(const float* __restrict__ input, float* __restrict__ output, int64_t rows, int64_t cols,
                     unsigned tiles_across) {
  constexpr int kTilePad = kTile + 1;
  extern __shared__ float tile[];  // kTile rows of kTilePad
  const int x = threadIdx.x, y = threadIdx.y;
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int tall = static_cast<int>(min(rows - first_row, int64_t{kTile}));  // of this tile
  const int wide = static_cast<int>(min(cols - first_col, int64_t{kTile}));

  if (x < wide) {
    const float* from = input + (first_row + min(y, tall - 1)) * cols + first_col + x;
    for (int row = y; row < y + tall; row += kHeld * kThreadRows) {
      float held[kHeld];
#pragma unroll
      for (int k = 0; k < kHeld; ++k) {
        held[k] = *from;  // beyond the last row of the tile, that row again
        if (row + (k + 1) * kThreadRows < tall) from += kThreadRows * cols;
      }
#pragma unroll
      for (int k = 0; k < kHeld; ++k) tile[(row + k * kThreadRows) * kTilePad + x] = held[k];
    }
  }
  __syncthreads();
  if (x < tall) {
    float* to = output + (first_col + y) * rows + first_row + x;
#pragma unroll 8
    for (int col = y; col < wide; col += kThreadRows, to += kThreadRows * rows) *to = tile[x * kTilePad + col];
  }
}

template <int kTile, int kThreadRows, int kHeld>
void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  constexpr int kBytes = kTile * (kTile + 1) * sizeof(float);
  auto* kernel = transpose_kernel<kTile, kThreadRows, kHeld>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
  kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), kBytes, stream>>>(input, output, rows, cols,
                                                                                           static_cast<unsigned>(wide));
}

inline const Stage<Transpose> stage{
    "transpose_v5", "tiles of 128, padded to 129", launch<128, 4, 16>, {80, Transpose::one_block_per_tile<128>}};

}  // namespace ladder::transpose::transpose_v5

LADDER_MAIN(ladder::transpose::transpose_v5::stage)
