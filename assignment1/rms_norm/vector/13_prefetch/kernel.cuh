// 13_prefetch: 12_one_word, with the row on its way from memory to L2 before the kernel before has ended, and with the
// next kernel let in at the very beginning.
//
// It removes the trip to DRAM from the time after the wait. Before the wait nothing may be read that the kernel before
// may write. But a prefetch reads nothing: it asks L2 for a line, and L2 is where that kernel's writes arrive too, so a
// write that comes later changes the line there. No register and no L1 cache holds an old value. And where 12 lets the
// next kernel in when it knows its sum, here that kernel comes in at once, with its own prefetches: the two changes
// belong together, because a kernel can only prefetch once it has begun. Needs sm_90.
// It leaves: a trip to L2 for the row, one for the words of the other blocks, and the stores.
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

namespace ladder::vector::prefetch {

constexpr int kMostThreads = 1024;
constexpr int kMostBlocks = 128;
constexpr int kVectors = 4;  // packs of 16 bytes that a thread keeps

// As in 12_one_word: number of the launch << 32 | bits of the sum, one for each block. Two launches must not run at the
// same time, except that one begins before the other has ended, and waits for it.
__device__ uint64_t words[kMostBlocks];
using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;

__device__ inline float exchange(float sum, unsigned number) {
  const unsigned tid = threadIdx.x;
  if (tid == 0) Word(words[blockIdx.x]).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
  if (tid >= gridDim.x) return 0.0f;
  uint64_t word;
  do word = Word(words[tid]).load(relaxed);
  while (word >> 32 != number);
  return __uint_as_float(static_cast<unsigned>(word));
}

// T: float or __nv_bfloat16. `input` is not __restrict__, as in 11_dependent_launch.
template <class T>
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_prefetch(const T* input, const T* __restrict__ weight, T* __restrict__ output, VectorPart part,
                             float inverse_n, float eps) {
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const auto* vec_input = reinterpret_cast<const uint4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const uint4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<uint4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, step = int64_t{gridDim.x} * blockDim.x;
  const auto weight_at = [&](int64_t i) { return weight == nullptr ? ones<T>() : vec_weight[i]; };

#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
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
#endif
  const unsigned number = static_cast<unsigned>(Word(words[blockIdx.x]).load(relaxed) >> 32) + 1;
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) kept[v] = vec_input[i];

  float sum = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) sum += sum_of_squares<T>(kept[v]);
#pragma unroll 2
  for (int64_t i = first + kVectors * step; i < part.count; i += step) sum += sum_of_squares<T>(vec_input[i]);
  for (int64_t i = first; i < part.rest; i += step) {
    const float x = element(input + part.outside(i));
    sum += x * x;
  }
  sum = row_sum(sum, warp_sums[0]);
  sum = row_sum(exchange(sum, number), warp_sums[1]);
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count) vec_output[i] = scaled<T>(kept[v], rstd, kept_weight[v]);
#pragma unroll 2
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
  CUDA_CHECK(cudaLaunchKernelEx(&config, rms_norm_kernel_prefetch<T>, input, weight, output, part,
                                1.0f / static_cast<float>(n), eps));
}

inline const Stage<RmsNormVector> stage{
    "13_prefetch", "the row comes to L2 while the kernel before still runs", launch<float>, {90}};

}  // namespace ladder::vector::prefetch
