// 10_block_shapes and 12_bulk_copy, launched in other shapes.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/matrix/10_block_shapes/kernel.cuh"
#include "assignment1/rms_norm/matrix/12_bulk_copy/kernel.cuh"
#include "common/cuda_check.h"
#include "common/launch.h"

namespace ladder::matrix::controls {

// A block for every row that kVectors float4 in each of up to 1024 threads can hold, in whole groups of 4 warps.
template <int kVectors>
void launch_vectors(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                    cudaStream_t stream) {
  const int64_t threads = (blocks_for(cols / 4, kVectors) + 127) / 128 * 128;
  if (threads > block_shapes::kMostThreads)
    block_shapes::launch(input, weight, output, rows, cols, eps, stream);
  else
    block_shapes::launch_shape<kVectors>(std::max(static_cast<int>(threads), 128), 1, input, weight, output, rows, cols,
                                         eps, stream);
}

// A block for each row, which therefore asks for no next row. Rows that the copy engine cannot fetch, or of which three
// do not fit into shared memory, are left to the stage.
inline void launch_bulk_copy_of_one_row(const float* input, const float* weight, float* output, int64_t rows,
                                        int64_t cols, float eps, cudaStream_t stream) {
  const bool aligned = aligned_for<float4>(input, output) && aligned_for<float4>(weight, nullptr) && cols % 4 == 0;
  if (rows == 0 || !aligned || cols > 16384) return bulk_copy::launch(input, weight, output, rows, cols, eps, stream);
  const auto kernel = bulk_copy::rms_norm_kernel_bulk_copy<true>;
  const int64_t threads = std::clamp<int64_t>(cols / 16 + 127, 128, bulk_copy::kMostThreads) / 128 * 128;
  const int bytes = bulk_copy::kBarriers + 3 * static_cast<int>(cols * sizeof(float));
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  kernel<<<static_cast<unsigned>(rows), static_cast<unsigned>(threads), bytes, stream>>>(
      input, weight, output, rows, cols, 1.0f / static_cast<float>(cols), eps);
}

}  // namespace ladder::matrix::controls
