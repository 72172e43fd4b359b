// 13_prefetch and 14_copied_words with each of their choices as a parameter: the shape of the grid, how sums are
// exchanged, when the next kernel may start, and what is asked for before the wait. T is float or __nv_bfloat16.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/annotated_ptr>
#include <cuda/atomic>
#include <utility>

#include "assignment1/rms_norm/vector/packs.cuh"
#include "assignment1/rms_norm/vector/shared.cuh"
#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/launch.h"

namespace ladder::vector::controls {

enum class Exchange {
  block,       // the first threads of a block read a word each, and the block adds them up
  one_warp,    // one warp reads all words, the block reads their sum
  every_warp,  // every warp reads all words and needs no other warp
  own,         // as `block`, but each block has a copy of the words, so that fewer blocks read one address
  pairs,       // each pair of blocks
  quads,       // every four blocks
  cluster,     // the blocks of a cluster add up first; every warp reads one word per cluster
};
enum class Next {
  plain,       // an ordinary launch
  after_sum,   // dependent: the next kernel may begin when the sum is known,
  after_wait,  // after the wait for the kernel before,
  at_once      // or at the very beginning
};
enum class Early { nothing, lines, bulk };  // prefetched before the wait: by lanes, or a stretch by one thread

template <int kNumber_, int kBlocks_, int kThreads_, int kVectors_, Exchange kExchange_, Next kNext_, Early kEarly_,
          int kCluster_ = 1, bool kKeepsWeight_ = true>
struct Form {
  static constexpr int kNumber = kNumber_;  // of a program: each form has its own words
  static constexpr int kBlocks = kBlocks_, kThreads = kThreads_, kVectors = kVectors_, kCluster = kCluster_;
  static constexpr Exchange kExchange = kExchange_;
  static constexpr int kReaders = kExchange == Exchange::own     ? 1  // blocks that read a copy, if there are copies
                                  : kExchange == Exchange::pairs ? 2
                                  : kExchange == Exchange::quads ? 4
                                                                 : 0;
  static constexpr Next kNext = kNext_;
  static constexpr Early kEarly = kEarly_;
  static constexpr bool kKeepsWeight = kKeepsWeight_;  // or loads it when the sum is known
};

constexpr int kMostBlocks = 132, kMostForms = 24;
__device__ uint64_t words[kMostForms][kMostBlocks * kMostBlocks];  // number of the launch << 32 | bits of the sum
using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;

// Every thread gets the sum of its block's values. A kernel uses each `use` once.
template <int kThreads, int use>
__device__ float block_sum(float value) {
  __shared__ alignas(16) float warp_sums[kThreads / 32];
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

__device__ inline float received(const uint64_t* word, unsigned number) {
  uint64_t read;
  do read = Word(*const_cast<uint64_t*>(word)).load(relaxed);
  while (read >> 32 != number);
  return __uint_as_float(static_cast<unsigned>(read));
}

// Every lane gets the sum of `count` words. The loads of a lane start together.
__device__ inline float warp_received(const uint64_t* from, int count, unsigned number) {
  constexpr int kEach = (kMostBlocks + 31) / 32;
  const int lane = threadIdx.x % 32;
  uint64_t read[kEach];
  bool complete;
  do {
    complete = true;
#pragma unroll
    for (int k = 0; k < kEach; ++k)
      if (lane + 32 * k < count) read[k] = Word(*const_cast<uint64_t*>(from + lane + 32 * k)).load(relaxed);
#pragma unroll
    for (int k = 0; k < kEach; ++k)
      if (lane + 32 * k < count) complete &= read[k] >> 32 == number;
  } while (!complete);
  float sum = 0.0f;
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (lane + 32 * k < count) sum += __uint_as_float(static_cast<unsigned>(read[k]));
  return warp_reduce_sum(sum);
}

// Where this block finds the number of the launch before.
template <class F>
__device__ uint64_t* own_word() {
  if (F::kExchange == Exchange::cluster) return words[F::kNumber] + blockIdx.x / F::kCluster;
  return words[F::kNumber] + blockIdx.x;  // of copies, the first
}

template <class F>
__device__ float exchange(float sum, unsigned number) {
  uint64_t* const all = words[F::kNumber];
  const int tid = threadIdx.x, blocks = gridDim.x;
  const uint64_t word = uint64_t{number} << 32 | __float_as_uint(sum);
  if constexpr (F::kReaders > 0) {
    const int copies = (blocks + F::kReaders - 1) / F::kReaders;
    const uint64_t* const copy = all + blockIdx.x / F::kReaders * blocks;
    if (tid < copies) Word(all[tid * blocks + blockIdx.x]).store(word, relaxed);
    return block_sum<F::kThreads, 1>(tid < blocks ? received(copy + tid, number) : 0.0f);
  }
#if __CUDA_ARCH__ >= 900
  if constexpr (F::kExchange == Exchange::cluster) {
    // The kernel has arrived at the cluster's barrier at its beginning.
    __shared__ float cluster_sums[F::kCluster];
    const auto cluster = cooperative_groups::this_cluster();
    cluster.barrier_wait();
    const int rank = blockIdx.x % F::kCluster;
    if (tid < F::kCluster) *cluster.map_shared_rank(cluster_sums + rank, tid) = sum;
    cluster.sync();
    sum = 0.0f;
    for (int i = 0; i < F::kCluster; ++i) sum += cluster_sums[i];
    if (tid == 0 && rank == 0) Word(*own_word<F>()).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
    return warp_received(all, blocks / F::kCluster, number);
  }
#endif
  if (tid == 0) Word(all[blockIdx.x]).store(word, relaxed);
  if constexpr (F::kExchange == Exchange::every_warp) return warp_received(all, blocks, number);
  if constexpr (F::kExchange == Exchange::one_warp) {
    __shared__ float total;
    if (tid < 32) {
      const float received_sum = warp_received(all, blocks, number);
      if (tid == 0) total = received_sum;
    }
    __syncthreads();
    return total;
  }
  return block_sum<F::kThreads, 1>(tid < blocks ? received(all + tid, number) : 0.0f);
}

// Asks L2 for `bytes`, a multiple of 16, from an address that is one too.
__device__ inline void prefetch_stretch([[maybe_unused]] const void* from, [[maybe_unused]] unsigned bytes) {
#if __CUDA_ARCH__ >= 900 && !defined(__SIMT__)
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)), "r"(bytes));
#endif
}

template <class T, class F>
__global__ void __launch_bounds__(F::kThreads)
    rms_norm_kernel_form(const T* input, const T* __restrict__ weight, T* __restrict__ output, VectorPart part,
                         float inverse_n, float eps) {
  constexpr int kVectors = F::kVectors, kThreads = F::kThreads;
#if __CUDA_ARCH__ >= 900
  if constexpr (F::kNext == Next::at_once) cudaTriggerProgrammaticLaunchCompletion();
  if constexpr (F::kExchange == Exchange::cluster) cooperative_groups::this_cluster().barrier_arrive();
#endif
  const auto* vec_input = reinterpret_cast<const uint4*>(input + part.head);
  const auto* vec_weight = reinterpret_cast<const uint4*>(weight + part.head);
  auto* vec_output = reinterpret_cast<uint4*>(output + part.head);
  const int64_t first = int64_t{blockIdx.x} * kThreads + threadIdx.x, step = int64_t{gridDim.x} * kThreads;
  const auto weight_at = [&](int64_t i) { return weight == nullptr ? ones<T>() : vec_weight[i]; };

  if constexpr (F::kEarly == Early::lines) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const int64_t i = first + v * step; threadIdx.x % 8 == 0 && i < part.count)
        cuda::apply_access_property(vec_input + i, sizeof(uint4), cuda::access_property::normal());
  }
  if constexpr (F::kEarly == Early::bulk) {
    const int64_t begin = int64_t{blockIdx.x} * kThreads + threadIdx.x * step;
    if (threadIdx.x < kVectors && begin < part.count)
      prefetch_stretch(vec_input + begin, static_cast<unsigned>(16 * min(part.count - begin, int64_t{kThreads})));
  }
  uint4 kept[kVectors] = {}, kept_weight[kVectors] = {};
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; F::kKeepsWeight && i < part.count) kept_weight[v] = weight_at(i);
#if __CUDA_ARCH__ >= 900
  if constexpr (F::kNext != Next::plain) cudaGridDependencySynchronize();
#endif
#if __CUDA_ARCH__ >= 900
  if constexpr (F::kNext == Next::after_wait) cudaTriggerProgrammaticLaunchCompletion();
#endif
  const unsigned number = static_cast<unsigned>(Word(*own_word<F>()).load(relaxed) >> 32) + 1;
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
  sum = exchange<F>(block_sum<kThreads, 0>(sum), number);
#if __CUDA_ARCH__ >= 900
  if constexpr (F::kNext == Next::after_sum) cudaTriggerProgrammaticLaunchCompletion();
#endif
  const float rstd = rsqrtf(sum * inverse_n + eps);

#pragma unroll
  for (int v = 0; v < kVectors; ++v)
    if (const int64_t i = first + v * step; i < part.count)
      vec_output[i] = scaled<T>(kept[v], rstd, F::kKeepsWeight ? kept_weight[v] : weight_at(i));
#pragma unroll 1
  for (int64_t i = first + kVectors * step; i < part.count; i += step)
    vec_output[i] = scaled<T>(vec_input[i], rstd, weight_at(i));
  for (int64_t i = first; i < part.rest; i += step) {
    const float normalized = element(input + part.outside(i)) * rstd;
    set_element(output + part.outside(i),
                weight == nullptr ? normalized : normalized * element(weight + part.outside(i)));
  }
}

template <class T, class F>
void launch(const T* input, const T* weight, T* output, float*, int64_t n, float eps, cudaStream_t stream) {
  static_assert(F::kNumber < kMostForms && F::kBlocks <= kMostBlocks && F::kThreads >= F::kBlocks &&
                F::kThreads >= 128);
  const auto kernel = rms_norm_kernel_form<T, F>;
  if (F::kCluster > 8) CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  const int together = std::min(multiprocessors(), F::kBlocks);
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config = {};
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes[config.numAttrs] = {};
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  next(cudaLaunchAttributeCooperative).cooperative = 1;
  if (F::kNext != Next::plain)
    next(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  if (F::kCluster > 1) {
    auto& cluster = next(cudaLaunchAttributeClusterDimension).clusterDim;
    cluster.x = F::kCluster, cluster.y = cluster.z = 1;
  }
  config.gridDim = dim3(static_cast<unsigned>(std::max(together / F::kCluster, 1) * F::kCluster));
  config.blockDim = dim3(F::kThreads);
  config.stream = stream;
  config.attrs = attributes;
  if (F::kCluster > 1) {  // all blocks must be on the GPU at once, a cluster's on neighbouring SMs
    int clusters = 0;
    CUDA_CHECK(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config));
    config.gridDim.x = std::min<unsigned>(config.gridDim.x, std::max(clusters, 1) * F::kCluster);
  }
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, input, weight, output, vector_part(input, weight, output, n),
                                1.0f / static_cast<float>(n), eps));
}

}  // namespace ladder::vector::controls
