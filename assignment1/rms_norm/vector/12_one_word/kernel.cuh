// 12_one_word: 11_dependent_launch with a barrier of its own. A block publishes its sum and the number of the launch as
// one 64-bit word, and every block reads the words of all blocks until each has the right number.
//
// It removes cooperative groups' barrier, which counts the blocks in one place and then lets them go, and the trip for
// the sums after it: who sees a block's number has its sum, so one trip through L2 is barrier and exchange together.
// No memory is put in order, because nothing but the words themselves crosses from block to block.
// It leaves: after the wait for the kernel before, the row comes from memory and everything else has to wait for it.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/atomic>

#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::one_word {

constexpr int kMostThreads = 1024;
constexpr int kMostBlocks = 128;
constexpr int kVectors = 4;  // float4 that a thread keeps

// number of the launch << 32 | bits of the sum, one for each block. All launches share the words, so two launches must
// not run at the same time: not on two streams, not in two branches of a graph. Every launch has the same number of
// blocks, so all words have the number of the launch before; at first, 0.
__device__ uint64_t words[kMostBlocks];

using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;  // each word is complete in itself, so no order is needed

// Thread `tid` of each block gets the sum of block `tid`, or 0. A block barrier has passed since `number` was read.
__device__ inline float exchange(float sum, unsigned number) {
  const unsigned tid = threadIdx.x;
  if (tid == 0) Word(words[blockIdx.x]).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
  if (tid >= gridDim.x) return 0.0f;
  uint64_t word;
  do word = Word(words[tid]).load(relaxed);
  while (word >> 32 != number);
  return __uint_as_float(static_cast<unsigned>(word));
}

__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// `input` is not __restrict__: otherwise the compiler may take it for memory never written, and load it before the
// wait.
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_one_word(const float* input, const float* __restrict__ weight, float* __restrict__ output,
                             VectorPart part, float inverse_n, float eps) {
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const auto* vec_input = reinterpret_cast<const float4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const float4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<float4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
  const auto weight_at = [&](int64_t i) {
    return weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
  };

  float4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept_weight[v] = weight_at(i);
  wait_for_previous_kernel();
  const unsigned number = static_cast<unsigned>(Word(words[blockIdx.x]).load(relaxed) >> 32) + 1;
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept[v] = vec_input[i];

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares(kept[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step) sum += sum_of_squares(vec_input[i]);
  for (int64_t i = first; i < part.rest; i += step) sum += input[part.outside(i)] * input[part.outside(i)];
  sum = row_sum(sum, warp_sums[0]);
  sum = row_sum(exchange(sum, number), warp_sums[1]);
  let_next_kernel_start();
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) vec_output[i] = scaled(kept[v], rstd, kept_weight[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step)
    vec_output[i] = scaled(vec_input[i], rstd, weight_at(i));
  for (int64_t i = first; i < part.rest; i += step) {
    const float normalized = input[part.outside(i)] * rstd;
    output[part.outside(i)] = weight == nullptr ? normalized : normalized * weight[part.outside(i)];
  }
}

inline void launch(const float* input, const float* weight, float* output, float*, int64_t n, float eps,
                   cudaStream_t stream) {
  const VectorPart part = vector_part(input, weight, output, n);
  const int blocks = std::min(multiprocessors(), kMostBlocks);
  // As many threads as keep the row, in whole groups of 4 warps, so that row_sum reads no gap; at least one for each
  // word.
  const int64_t threads = std::clamp<int64_t>(blocks_for(part.count, kVectors * blocks) + 127, 128, kMostThreads);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads / 128 * 128));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_one_word, input, weight, output, part,
                                1.0f / static_cast<float>(n), eps));
}

inline const Stage<RmsNormVector> stage{"12_one_word", "sum and number of the launch in one word", launch, {90}};

}  // namespace ladder::vector::one_word
