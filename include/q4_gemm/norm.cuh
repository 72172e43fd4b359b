// RMSNorm that ends in quantized numbers: the norm of a layer and the quantization that its matrix multiplications
// need, in one pass over each column.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "activations.cuh"
#include "arguments.cuh"
#include "elements.cuh"
#include "layout.cuh"

namespace q4_gemm::detail {

// R is void if no residual is added.
template <class X, class R, class W>
struct NormProblem {
  static constexpr bool kAdds = !std::is_void_v<R>;
  Columns<X> x;
  Columns<R> residual;
  Columns<R> residual_out;
  const W* weight;  // or nullptr
  bool weight_aligned;
  QuantizedColumns to;
  int64_t k;
  float eps, weight_offset;
  bool dependent;
};

// The sum of a block's threads, the same for each of them. Called once in a kernel.
template <int kThreads>
__device__ float block_sum(float value) {
  __shared__ float warp_sums[kThreads / 32];
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) sum += warp_sums[i];
  return sum;
}

// A block has a column, a thread every kThreads-th eight numbers of it. The first kKept of them stay in registers
// between the sum and the scaling; longer columns are read again from there on.
template <int kThreads, int kKept, class X, class R, class W>
__global__ void __launch_bounds__(kThreads) rms_norm_quantize_kernel(const NormProblem<X, R, W> p) {
  constexpr bool kAdds = NormProblem<X, R, W>::kAdds;
  using Kept = std::conditional_t<kAdds, R, X>;  // what is normalized
  const int64_t column = blockIdx.x;
  const auto first_of = [](int64_t i) { return 8 * (i * kThreads + threadIdx.x); };
  const auto load_weight = [&](int64_t first, float* weight) {
    Eight<W> loaded;
    Columns<W>::clear(loaded);
    if (p.weight != nullptr && first < p.k) loaded.load(p.weight + first, p.weight_aligned);
#pragma unroll
    for (int j = 0; j < 8; ++j) weight[j] = p.weight == nullptr ? 1.0f : p.weight_offset + to_float(loaded.values[j]);
  };
  // x, or x + residual, which is stored.
  const auto load = [&](int64_t first, Eight<Kept>& kept) {
    if constexpr (kAdds) {
      Eight<X> x;
      p.x.load(x, column, first);
      p.residual.load(kept, column, first);
#pragma unroll
      for (int j = 0; j < 8; ++j) kept.values[j] = from_float<R>(to_float(x.values[j]) + to_float(kept.values[j]));
      p.residual_out.store(kept, column, first);
    } else {
      p.x.load(kept, column, first);
    }
  };
  const auto load_again = [&](int64_t first, Eight<Kept>& kept) {
    if constexpr (kAdds)
      p.residual_out.load(kept, column, first);
    else
      p.x.load(kept, column, first);
  };

  float weight[8];
  load_weight(first_of(0), weight);
  if (p.dependent) wait_for_previous_kernel();
  if (p.dependent) let_next_kernel_start();

  Eight<Kept> kept[kKept];
  float sum = 0.0f;
  const auto add_squares = [&](const Eight<Kept>& eight) {
#pragma unroll
    for (int j = 0; j < 8; ++j) sum += to_float(eight.values[j]) * to_float(eight.values[j]);
  };
#pragma unroll
  for (int i = 0; i < kKept; ++i) {
    if (first_of(i) < p.k)
      load(first_of(i), kept[i]);
    else
      Columns<Kept>::clear(kept[i]);
    add_squares(kept[i]);
  }
  for (int64_t i = kKept; first_of(i) < p.k; ++i) {
    Eight<Kept> eight;
    load(first_of(i), eight);
    add_squares(eight);
  }
  const float rstd = rsqrtf(block_sum<kThreads>(sum) / static_cast<float>(p.k) + p.eps);

  const int64_t size = p.to.chunks * kChunk;  // with what is padded
  const auto finish = [&](int64_t i, const Eight<Kept>& eight) {
    const int64_t first = first_of(i);
    if (i > 0) load_weight(first, weight);
    float y[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = first < p.k ? to_float(eight.values[j]) * rstd * weight[j] : 0.0f;
    const EightNumbers numbers = quantized(y);
    if (first < size) p.to.store(column, first, numbers);
  };
#pragma unroll
  for (int i = 0; i < kKept; ++i)
    if (8 * int64_t{i} * kThreads < size) finish(i, kept[i]);
  for (int64_t i = kKept; 8 * i * kThreads < size; ++i) {  // all threads of a warp have the same i
    Eight<Kept> eight;
    if (first_of(i) < p.k)
      load_again(first_of(i), eight);
    else
      Columns<Kept>::clear(eight);
    finish(i, eight);
  }
}

}  // namespace q4_gemm::detail
