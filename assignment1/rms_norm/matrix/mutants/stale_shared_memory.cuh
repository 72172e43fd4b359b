// stale_shared_memory: four blocks walk over all rows, and no barrier separates one row from the next. A fast warp
// writes its sum of row n + 4 where a slow warp still has to read the sum of row n.
#pragma once

#include "parts.cuh"

namespace ladder::matrix::mutants::stale_shared_memory {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t rows, int64_t cols,
                                float eps) {
  __shared__ float warp_sums[parts::kBlockSize / 32];
  const int lane = threadIdx.x % 32;
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* row_input = input + row * cols;
    const float warp_sum = warp_reduce_sum(parts::sum_of_squares(row_input, cols));
    if (lane == 0) warp_sums[threadIdx.x / 32] = warp_sum;  // the other end of the fault: a barrier before it cures it
    __syncthreads();
    const float sum = warp_reduce_sum(lane < parts::kBlockSize / 32 ? warp_sums[lane] : 0.0f);
    parts::scale_row(row_input, weight, output + row * cols, cols, rsqrtf(sum / static_cast<float>(cols) + eps));
    // the fault: no __syncthreads() before the next row
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  rms_norm_kernel<<<4, parts::kBlockSize, 0, stream>>>(input, weight, output, rows, cols, eps);
}

inline const Mutant<RmsNorm> mutant{"stale_shared_memory", "no barrier between two rows of a block", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::stale_shared_memory
