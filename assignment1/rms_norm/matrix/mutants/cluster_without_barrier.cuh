// cluster_without_barrier: two blocks share a row. Each waits only for its own threads before it reads what the other
// block has to write.
#pragma once

#include <cooperative_groups.h>

#include "parts.cuh"

namespace ladder::matrix::mutants::cluster_without_barrier {

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t cols, float eps) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  __shared__ float part_sums[2];
  const int part = blockIdx.x % 2, tid = threadIdx.x;
  const int64_t begin = blockIdx.x / 2 * cols + (part == 0 ? 0 : cols / 2),
                count = part == 0 ? cols / 2 : cols - cols / 2;

  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(input + begin, count));
  cluster.sync();  // both blocks have begun
  if (tid < 2) *cluster.map_shared_rank(part_sums + part, tid) = sum;
  __syncthreads();  // the fault: cluster.sync() would wait for the other block, too
  const float rstd = rsqrtf((part_sums[0] + part_sums[1]) / static_cast<float>(cols) + eps);
  parts::scale_row(input + begin, weight == nullptr ? nullptr : weight + begin % cols, output + begin, count, rstd);
  cluster.sync();  // no block ends before the other has written into it
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

inline const Mutant<RmsNorm> mutant{"cluster_without_barrier",
                                    "a cluster's sums are read without waiting for its other blocks", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::cluster_without_barrier
