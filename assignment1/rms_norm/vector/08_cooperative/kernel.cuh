// 08_cooperative: one launch. All blocks of the grid run at the same time, so they can wait for each other at a barrier
// between the sum and the scaling.
//
// It removes the second launch of 02 to 07, and with it the end of one kernel and the beginning of another. A barrier
// over the grid needs every block to be running: a block that waits for one that has not begun would wait for ever. A
// cooperative launch guarantees it or fails, so there are at most as many blocks as SMs here, with 512 threads each.
// It leaves: every element is read twice, before the barrier and after it (counter: global load requests).
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::cooperative {

constexpr int kBlockSize = 512;
constexpr int kMostBlocks = 128;

// Calls visit_vector(i) for this thread's float4 and visit(i) for its elements outside.
template <class VisitVector, class Visit>
__device__ void for_each_of_thread(const VectorPart& part, VisitVector visit_vector, Visit visit) {
  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
#pragma unroll 4
  for (int64_t i = first; i < part.count; i += step) visit_vector(i);
  for (int64_t i = first; i < part.rest; i += step) visit(part.outside(i));
}

__global__ void __launch_bounds__(kBlockSize)
    rms_norm_kernel_cooperative(const float* __restrict__ input, const float* __restrict__ weight,
                                float* __restrict__ output, float* partial_sums, VectorPart part, int64_t n,
                                float eps) {
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);

  float sum = 0.0f;
  for_each_of_thread(
      part, [&](int64_t i) { sum += sum_of_squares(vec_input[i]); }, [&](int64_t i) { sum += input[i] * input[i]; });
  sum = block_reduce_sum<kBlockSize>(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;

  // What a block wrote before this barrier, every block can read after it. It is also the block barrier that the second
  // block_reduce_sum needs.
  cooperative_groups::this_grid().sync();
  sum = threadIdx.x < gridDim.x ? partial_sums[threadIdx.x] : 0.0f;
  const float rstd = rsqrtf(block_reduce_sum<kBlockSize>(sum) / static_cast<float>(n) + eps);

  for_each_of_thread(
      part,
      [&](int64_t i) {
        const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
        vec_output[i] = scaled(vec_input[i], rstd, w);
      },
      [&](int64_t i) {
        const float normalized = input[i] * rstd;
        output[i] = weight == nullptr ? normalized : normalized * weight[i];
      });
}

inline void launch(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                   cudaStream_t stream) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(std::min<int64_t>(multiprocessors(), kMostBlocks)));
  config.blockDim = dim3(kBlockSize);
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_cooperative, input, weight, output, scratch,
                                vector_part(input, weight, output, n), n, eps));
}

inline const Stage<RmsNormVector> stage{"08_cooperative", "one launch, a barrier over the grid", launch};

}  // namespace ladder::vector::cooperative
