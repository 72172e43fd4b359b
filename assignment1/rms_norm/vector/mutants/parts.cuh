// The right parts of kernels in which many blocks share a row, so that each mutant contains its fault and little else.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::mutants::parts {

constexpr int kBlockSize = 256;
constexpr int64_t kPerBlock = 8192;  // elements

// The elements of a block are [begin, end).
struct Share {
  int64_t begin, end;
};
__device__ inline Share share_of_block(int64_t n) {
  const int64_t begin = n * blockIdx.x / gridDim.x, end = n * (blockIdx.x + 1) / gridDim.x;
  return {begin, end};
}

// Every thread gets the sum of the squares of the block's elements, or of other numbers.
__device__ inline float sum_of_squares(const float* input, Share share) {
  float sum = 0.0f;
  for (int64_t i = share.begin + threadIdx.x; i < share.end; i += kBlockSize) sum += input[i] * input[i];
  return block_reduce_sum<kBlockSize>(sum);
}
__device__ inline float sum_of(const float* numbers, unsigned count) {
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < count; i += kBlockSize) sum += numbers[i];
  return block_reduce_sum<kBlockSize>(sum);
}

__device__ inline float rstd(float sum, int64_t n, float eps) { return rsqrtf(sum / static_cast<float>(n) + eps); }

__device__ inline void scale(const float* input, const float* weight, float* output, Share share, float rstd) {
  for (int64_t i = share.begin + threadIdx.x; i < share.end; i += kBlockSize)
    output[i] = weight == nullptr ? input[i] * rstd : input[i] * rstd * weight[i];
}

__global__ void partial_sums_kernel(const float* input, float* partial_sums, int64_t n) {
  const float sum = sum_of_squares(input, share_of_block(n));
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

inline unsigned blocks_of(int64_t n) {
  return static_cast<unsigned>(std::min<int64_t>(blocks_for(n, kPerBlock), RmsNormVector::kScratch - 1));
}

// A launch whose blocks all run at once. cudaGetLastError returns its error, as after <<<>>>.
template <class... Parameters, class... Arguments>
void launch_together(unsigned blocks, cudaStream_t stream, void (*rms_norm_kernel)(Parameters...),
                     Arguments... arguments) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(kBlockSize);
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, rms_norm_kernel, arguments...);
}

}  // namespace ladder::vector::mutants::parts
