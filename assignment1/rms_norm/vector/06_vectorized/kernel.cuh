// 06_vectorized: 05_warp_shuffle with 128-bit accesses, also where the tensors do not begin at a multiple of 16 bytes.
//
// It removes the narrow accesses of 05 (counters: global load requests, a quarter; sectors per request, 16). If all
// tensors are misaligned by the same number of elements, up to three head elements come before the first float4 and up
// to three tail elements after the last; 04_hybrid reads such a row one float at a time.
// It leaves: every block of the second kernel adds up the same partial sums before it can scale anything.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::vectorized {

constexpr int kBlockSize = 256;
constexpr int64_t kChunk = 2048;   // float4: eight per thread
constexpr int kMostBlocks = 1024;  // in rows of more than 2^23 elements a block has several chunks

// `count` float4 begin at element `head`. `rest` elements lie outside: fewer than eight, before and after the float4;
// or all of them, if the addresses do not reach a multiple of 16 at the same element.
struct Float4Part {
  int64_t head, count, rest;

  // The i-th element outside.
  __device__ int64_t outside(int64_t i) const { return i < head ? i : i + 4 * count; }
};

inline Float4Part float4_part(const float* input, const float* weight, const float* output, int64_t n) {
  const auto past = [](const float* pointer) { return reinterpret_cast<uintptr_t>(pointer) / 4 % 4; };  // in floats
  const bool alike = past(output) == past(input) && (weight == nullptr || past(weight) == past(input));
  const int64_t head = (4 - past(input)) % 4;
  const int64_t count = alike && n > head ? (n - head) / 4 : 0;
  return {count > 0 ? head : 0, count, n - 4 * count};
}

// visit_vector(i) for the block's float4, visit(i) for its elements outside.
template <class VisitVector, class Visit>
__device__ void for_each_of_block(const Float4Part& part, VisitVector visit_vector, Visit visit) {
  for (int64_t chunk = blockIdx.x * kChunk; chunk < part.count; chunk += gridDim.x * kChunk) {
#pragma unroll
    for (int j = 0; j < kChunk / kBlockSize; ++j)
      if (const int64_t i = chunk + j * kBlockSize + threadIdx.x; i < part.count) visit_vector(i);
  }
  const int64_t first = int64_t{blockIdx.x} * kBlockSize + threadIdx.x, step = int64_t{gridDim.x} * kBlockSize;
  for (int64_t i = first; i < part.rest; i += step) visit(part.outside(i));
}

__global__ void partial_sums_kernel(const float* __restrict__ input, float* __restrict__ partial_sums,
                                    Float4Part part) {
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  float sum = 0.0f;
  for_each_of_block(
      part, [&](int64_t i) { sum += sum_of_squares(vec_input[i]); }, [&](int64_t i) { sum += input[i] * input[i]; });
  sum = block_reduce_sum<kBlockSize>(sum);
  if (threadIdx.x == 0) partial_sums[blockIdx.x] = sum;
}

__global__ void scale_kernel(const float* __restrict__ input, const float* __restrict__ weight,
                             float* __restrict__ output, const float* __restrict__ partial_sums, Float4Part part,
                             int64_t n, float eps) {
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);
  float sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kBlockSize) sum += partial_sums[i];
  const float rstd = rsqrtf(block_reduce_sum<kBlockSize>(sum) / static_cast<float>(n) + eps);

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
  const Float4Part part = float4_part(input, weight, output, n);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(blocks_for(n, 4 * kChunk), kMostBlocks));
  partial_sums_kernel<<<blocks, kBlockSize, 0, stream>>>(input, scratch, part);
  scale_kernel<<<blocks, kBlockSize, 0, stream>>>(input, weight, output, scratch, part, n, eps);
}

inline const Stage<RmsNormVector> stage{"06_vectorized", "128-bit accesses with head and tail elements", launch};

}  // namespace ladder::vector::vectorized
