// cluster_block_leaves: two blocks share a row, and each reads the other's sum from the other's shared memory. Shared
// memory ends with its block, and a block may have ended before the other has read.
#pragma once

#include <cooperative_groups.h>

#include "parts.cuh"

namespace ladder::matrix::mutants::cluster_block_leaves {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t cols, float eps) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  __shared__ float part_sum;
  const int part = blockIdx.x % 2, tid = threadIdx.x;
  const int64_t begin = blockIdx.x / 2 * cols + (part == 0 ? 0 : cols / 2),
                count = part == 0 ? cols / 2 : cols - cols / 2;

  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(input + begin, count));
  if (tid == 0) part_sum = sum;
  cluster.sync();  // both blocks have written their sums
  const float both = *cluster.map_shared_rank(&part_sum, 0) + *cluster.map_shared_rank(&part_sum, 1);
  const float rstd = rsqrtf(both / static_cast<float>(cols) + eps);
  parts::scale_row(input + begin, weight == nullptr ? nullptr : weight + begin % cols, output + begin, count, rstd);
  // the fault: no cluster.sync() before the end
#endif
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  cudaLaunchAttribute pairs = {};
  pairs.id = cudaLaunchAttributeClusterDimension;
  pairs.val.clusterDim.x = 2;
  pairs.val.clusterDim.y = pairs.val.clusterDim.z = 1;
  parts::launch_with(pairs, 2 * rows, stream, rms_norm_kernel, input, weight, output, cols, eps);
}

inline const Mutant<RmsNorm> mutant{"cluster_block_leaves",
                                    "a block of a cluster ends before others have read its shared memory", launch,
                                    "cudaErrorIllegalAddress", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::cluster_block_leaves
