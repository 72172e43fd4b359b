// The right parts of a transpose of tiles, so that each mutant contains its fault and nothing else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/transpose.h"

namespace ladder::transpose::mutants::parts {

constexpr int kTile = 32;
constexpr int kThreadRows = 8;

using Kernel = void (*)(const float*, float*, int64_t, int64_t, unsigned);

// The parameter has the same name as the kernels, because errors name the kernel as the launch spells it.
template <Kernel transpose_kernel>
void one_block_per_tile(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  const int64_t wide = blocks_for(cols, kTile), tall = blocks_for(rows, kTile);
  if (wide * tall == 0) return;
  transpose_kernel<<<static_cast<unsigned>(wide * tall), dim3(kTile, kThreadRows), 0, stream>>>(
      input, output, rows, cols, static_cast<unsigned>(wide));
}

}  // namespace ladder::transpose::mutants::parts
