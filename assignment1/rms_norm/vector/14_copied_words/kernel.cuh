// 14_copied_words: 13_prefetch, in which each pair of blocks has a copy of the words. It is compiled for its number of
// threads, and lets the next kernel in after the wait.
//
// It removes readers of one address: in 13 every block reads each word again and again until it is there, and they take
// turns at it. Here two blocks read a copy that no other block reads, and a block writes its word into all copies, each
// by another thread. With the number of threads known, the compiler unrolls the sum of the block's warps and knows how
// many registers a thread may have. Needs sm_90.
// It leaves: a trip to L2 for the row, one for the words, and the stores.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/annotated_ptr>
#include <cuda/atomic>

#include "assignment1/rms_norm/vector/packs.cuh"
#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::copied_words {

constexpr int kMostBlocks = 128;
constexpr int kReaders = 2;  // blocks that read a copy
constexpr int kVectors = 4;  // packs of 16 bytes that a thread keeps

// As in 12_one_word: number of the launch << 32 | bits of the sum, one for each block, in each copy. Two launches must
// not run at the same time, except that one begins before the other has ended, and waits for it.
__device__ uint64_t words[kMostBlocks / kReaders][kMostBlocks];
using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;

__device__ inline float exchange(float sum, unsigned number) {
  const unsigned tid = threadIdx.x, copies = (gridDim.x + kReaders - 1) / kReaders;
  if (tid < copies) Word(words[tid][blockIdx.x]).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
  if (tid >= gridDim.x) return 0.0f;
  uint64_t word;
  do word = Word(words[blockIdx.x / kReaders][tid]).load(relaxed);
  while (word >> 32 != number);
  return __uint_as_float(static_cast<unsigned>(word));
}

// row_sum of common/kernel_helpers.cuh for blocks of one row and a number of threads that the compiler knows.
template <int kThreads>
__device__ float block_sum(float value, float* warp_sums) {
  value = warp_reduce_sum(value);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; warp += 4) {
    const float4 four = *reinterpret_cast<const float4*>(warp_sums + warp);
    sum += (four.x + four.y) + (four.z + four.w);
  }
  return sum;
}

// T: float or __nv_bfloat16. `input` is not __restrict__, as in 11_dependent_launch.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads)
    rms_norm_kernel_copied_words(const T* input, const T* __restrict__ weight, T* __restrict__ output, VectorPart part,
                                 float inverse_n, float eps) {
  __shared__ alignas(16) float warp_sums[2][kThreads / 32];
  const auto* vec_input = reinterpret_cast<const uint4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const uint4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<uint4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x, step = int64_t{gridDim.x} * kThreads;
  const auto weight_at = [&](int64_t i) { return weight == nullptr ? ones<T>() : vec_weight[i]; };

  // One lane in eight: its 16 bytes and those of the next seven lanes are a line of 128 bytes.
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; threadIdx.x % 8 == 0 && i < part.count)
      cuda::apply_access_property(vec_input + i, sizeof(uint4), cuda::access_property::normal());
  uint4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept_weight[v] = weight_at(i);
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();  // the kernel before has ended: no third kernel is on the GPU
#endif
  const unsigned number = static_cast<unsigned>(Word(words[0][blockIdx.x]).load(relaxed) >> 32) + 1;
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept[v] = vec_input[i];

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares<T>(kept[v]);
#pragma unroll 1
  for (int64_t i = first + kVectors * step; i < part.count; i += step) sum += sum_of_squares<T>(vec_input[i]);
  for (int64_t i = first; i < part.rest; i += step) {
    const float x = element(input + part.outside(i));
    sum += x * x;
  }
  sum = block_sum<kThreads>(sum, warp_sums[0]);
  sum = block_sum<kThreads>(exchange(sum, number), warp_sums[1]);
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) vec_output[i] = scaled<T>(kept[v], rstd, kept_weight[v]);
#pragma unroll 1
  for (int64_t i = first + kVectors * step; i < part.count; i += step)
    vec_output[i] = scaled<T>(vec_input[i], rstd, weight_at(i));
  for (int64_t i = first; i < part.rest; i += step) {
    const float normalized = element(input + part.outside(i)) * rstd;
    set_element(output + part.outside(i),
                weight == nullptr ? normalized : normalized * element(weight + part.outside(i)));
  }
}

template <class T>
void launch(const T* input, const T* weight, T* output, float*, int64_t n, float eps, cudaStream_t stream) {
  const VectorPart part = vector_part(input, weight, output, n);
  const int blocks = std::min(multiprocessors(), kMostBlocks);
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeCooperative;
  attributes[0].val.cooperative = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  const auto with = [&](auto kernel, int threads) {
    config.blockDim = dim3(static_cast<unsigned>(threads));
    CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, input, weight, output, part, 1.0f / static_cast<float>(n), eps));
  };
  // As many threads as keep the row, if there can be so many.
  const int64_t packs_per_block = blocks_for(part.count, blocks);
  if (packs_per_block <= kVectors * 256)
    with(rms_norm_kernel_copied_words<T, 256>, 256);
  else if (packs_per_block <= kVectors * 512)
    with(rms_norm_kernel_copied_words<T, 512>, 512);
  else
    with(rms_norm_kernel_copied_words<T, 1024>, 1024);
}

inline const Stage<RmsNormVector> stage{
    "14_copied_words", "each pair of blocks has its copy of the words", launch<float>, {90}};

}  // namespace ladder::vector::copied_words
