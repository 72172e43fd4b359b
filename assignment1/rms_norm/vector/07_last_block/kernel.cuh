// 07_last_block: 06_vectorized with one launch for the whole sum. The block that ends last adds up the partial sums.
//
// It removes the second half of the sum from the second kernel: there every block added up all partial sums behind a
// barrier; now it reads one number (counters: global load requests and barriers of the scaling kernel).
// No block knows beforehand that it will be the last. Each block writes its partial sum, makes sure with a fence that
// others can see it, and then counts itself. The block that finds all others counted sees all their sums.
// It leaves: two launches, and the row is read twice.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::last_block {

constexpr int kBlockSize = 256;
constexpr int64_t kChunk = 2048;   // float4: eight per thread
constexpr int kMostBlocks = 1024;  // in rows of more than 2^23 elements a block has several chunks

// The blocks of the running launch that have published their sums. All launches share it, so two launches must not run
// at the same time. The last block's atomicInc sets it back to 0.
__device__ unsigned published;

template <class VisitVector, class Visit>
__device__ void for_each_of_block(const VectorPart& part, VisitVector visit_vector, Visit visit) {
  for (int64_t chunk = blockIdx.x * kChunk; chunk < part.count; chunk += gridDim.x * kChunk) {
#pragma unroll
    for (int j = 0; j < kChunk / kBlockSize; ++j)
      if (const int64_t i = chunk + j * kBlockSize + threadIdx.x; i < part.count) visit_vector(i);
  }
  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
  for (int64_t i = first; i < part.rest; i += step) visit(part.outside(i));
}

// scratch: 1 / sqrt(mean(x²) + eps), then one partial sum per block
__global__ void rstd_kernel(const float* __restrict__ input, float* __restrict__ scratch, VectorPart part, int64_t n,
                            float eps) {
  __shared__ bool is_last;
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  float* partial_sums = scratch + 1;
  float sum = 0.0f;
  for_each_of_block(
      part, [&](int64_t i) { sum += sum_of_squares(vec_input[i]); }, [&](int64_t i) { sum += input[i] * input[i]; });
  sum = block_reduce_sum<kBlockSize>(sum);
  if (threadIdx.x == 0) {
    partial_sums[blockIdx.x] = sum;
    __threadfence();  // the sum is visible to all blocks before this block is counted
    is_last = atomicInc(&published, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();  // what is read below is read after the count

  sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kBlockSize) sum += partial_sums[i];
  sum = block_reduce_sum<kBlockSize>(sum);
  if (threadIdx.x == 0) scratch[0] = rsqrtf(sum / static_cast<float>(n) + eps);
}

__global__ void scale_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                             float* __restrict__ output, const float* __restrict__ scratch, VectorPart part) {
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);
  const float rstd = scratch[0];
  for_each_of_block(
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
  const VectorPart part = vector_part(input, weight, output, n);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, 4 * kChunk), kMostBlocks));
  rstd_kernel<<<blocks, kBlockSize, 0, stream>>>(input, scratch, part, n, eps);
  scale_kernel<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, scratch, part);
}

inline const Stage<RmsNormVector> stage{"07_last_block", "one launch for the sum: fence and counter", launch};

}  // namespace ladder::vector::last_block
