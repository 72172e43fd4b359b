// 03_tiled: the row goes through a shared-memory tile of 128 elements, padded to 129; after the lecture transpose_v5.
//
// An experiment, and its result is negative. A transpose needs its tile because the thread that reads an element is not
// the one that loaded it. Here it is the same thread, so the tile removes no defect of 02_reduction5 and adds two:
// every element takes a detour through shared memory, and every tile costs a barrier that protects nothing (8192
// columns: 64 tiles, 72 barriers per row in all; counter: stalled at a barrier). The padding changes nothing either:
// consecutive lanes already use consecutive banks. A second change: a block has 128 threads, where 02 has 256.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/operators/rms_norm.h"

namespace ladder::matrix::tiled {

// kTileSize is also the block size: one element per thread.
template <int kTileSize>
__global__ void rms_norm_kernel_w2l3_tile(const float* __restrict__ input, const float* __restrict__ weight,
                                          float* __restrict__ output, int64_t cols, float eps) {
  constexpr int kTileSizePad = kTileSize + 1;  // kept from the transpose, to see what it does here
  __shared__ float tile[kTileSizePad];
  __shared__ float sdata[kTileSize];
  const int tid = threadIdx.x;
  const float* row_input = input + blockIdx.x * cols;
  float* row_output = output + blockIdx.x * cols;

  float sum = 0.0f;
  for (int64_t base = 0; base < cols; base += kTileSize) {
    if (base + tid < cols) tile[tid] = row_input[base + tid];
    __syncthreads();
    if (base + tid < cols) sum += tile[tid] * tile[tid];
  }
  sdata[tid] = sum;
  __syncthreads();

  for (int s = kTileSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }

  const float rstd = rsqrtf(sdata[0] / static_cast<float>(cols) + eps);
  for (int64_t base = 0; base < cols; base += kTileSize) {
    const int64_t i = base + tid;
    if (i < cols) {
      const float normalized = row_input[i] * rstd;
      row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
    }
  }
}

template <int kTileSize>
void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
            cudaStream_t stream) {
  if (rows == 0) return;  // a grid of no blocks is a launch error
  rms_norm_kernel_w2l3_tile<kTileSize>
      <<<static_cast<unsigned>(rows), kTileSize, 0, stream>>>(input, weight, output, cols, eps);
}

inline const Stage<RmsNorm> stage{
    "03_tiled", "a shared-memory tile of 128, a barrier per tile", launch<128>, {0, RmsNorm::one_block_per_row}};

}  // namespace ladder::matrix::tiled
