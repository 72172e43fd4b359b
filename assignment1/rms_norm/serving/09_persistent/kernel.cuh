// 09_persistent: the first idea of the document's list of future work: only as many blocks as the GPU holds at once,
// each of which walks over many tokens.
//
// It removes the start of a block for each token, and all but one reading of the weight by a block (counter: bytes that
// loads ask for). It costs the hardware's own way of dealing out work: a token belongs to a block before any block
// knows which block will be late (counters, on a GPU: active and elapsed cycles).
// It leaves: a block that waits for a row before it asks for the next one; 11_persistent of the matrix ladder does not.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::persistent {

template <class scalar_t>
struct alignas(16) Pack {
  static constexpr int kSize = 16 / sizeof(scalar_t);
  scalar_t val[kSize];
};

template <class scalar_t>
__device__ Pack<scalar_t> load(const scalar_t* from) {
  Pack<scalar_t> pack;
  *reinterpret_cast<uint4*>(pack.val) = *reinterpret_cast<const uint4*>(from);
  return pack;
}
template <class scalar_t>
__device__ void store(scalar_t* to, const Pack<scalar_t>& pack) {
  *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(pack.val);
}

// A thread has up to kPacks packs. What does not fit, or is not aligned, is read again element by element.
template <class scalar_t, int kPacks>
__global__ void __launch_bounds__(kPacks > 2 ? 256 : 1024)
    fused_add_rms_norm_kernel(scalar_t* __restrict__ input, int64_t input_stride, scalar_t* __restrict__ residual,
                              const scalar_t* __restrict__ weight, float epsilon, int64_t num_tokens,
                              int64_t hidden_size) {
  constexpr int kSize = Pack<scalar_t>::kSize;
  const unsigned reach = blockDim.x * kPacks, step = blockDim.x * kSize, first = threadIdx.x * kSize;
  const auto packs_of = [&](bool aligned) {
    const int64_t whole = aligned ? hidden_size / kSize : 0;
    return whole < reach ? static_cast<unsigned>(whole) : reach;
  };
  // Two arrays in turn: with one barrier per row, a warp may be one row ahead of another, and never two.
  __shared__ float warp_sums[2][32];
  int turn = 0;

  Pack<scalar_t> factors[kPacks] = {};
  const unsigned weight_packs = packs_of(aligned_16(weight, weight, weight));
#pragma unroll
  for (int k = 0; k < kPacks; ++k)
    if (threadIdx.x + k * blockDim.x < weight_packs) factors[k] = load(weight + first + k * step);

  for (int64_t token = blockIdx.x; token < num_tokens; token += gridDim.x, turn ^= 1) {
    scalar_t* input_row = input + token * input_stride;
    scalar_t* residual_row = residual + token * hidden_size;
    const unsigned packs = packs_of(aligned_16(input_row, residual_row, weight));

    Pack<scalar_t> kept[kPacks] = {};
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (threadIdx.x + k * blockDim.x < packs) kept[k] = load(input_row + first + k * step);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (threadIdx.x + k * blockDim.x < packs) {
        const Pack<scalar_t> old = load(residual_row + first + k * step);
#pragma unroll
        for (int i = 0; i < kSize; ++i) {
          kept[k].val[i] = added(kept[k].val[i], old.val[i]);
          sum += to_float(kept[k].val[i]) * to_float(kept[k].val[i]);
        }
        store(residual_row + first + k * step, kept[k]);
      }
    for (int64_t idx = packs * kSize + threadIdx.x; idx < hidden_size; idx += blockDim.x) {
      const scalar_t z = added(input_row[idx], residual_row[idx]);
      sum += to_float(z) * to_float(z);
      residual_row[idx] = z;
    }

    sum = warpReduceSum(sum);
    if (threadIdx.x % 32 == 0) warp_sums[turn][threadIdx.x / 32] = sum;
    __syncthreads();
    sum = warpReduceSum(threadIdx.x % 32 < blockDim.x / 32 ? warp_sums[turn][threadIdx.x % 32] : 0.0f);
    const float scale = rsqrtf(sum / static_cast<float>(hidden_size) + epsilon);

#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (threadIdx.x + k * blockDim.x < packs) {
#pragma unroll
        for (int i = 0; i < kSize; ++i)
          kept[k].val[i] = times_weight(to_float(kept[k].val[i]) * scale, factors[k].val[i]);
        store(input_row + first + k * step, kept[k]);
      }
    for (int64_t idx = packs * kSize + threadIdx.x; idx < hidden_size; idx += blockDim.x)
      input_row[idx] = times_weight(to_float(residual_row[idx]) * scale, weight[idx]);
  }
}

inline void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    const int64_t packs = (call.hidden_size + Pack<scalar_t>::kSize - 1) / Pack<scalar_t>::kSize;
    const unsigned threads = block_size(call.num_tokens, packs);
    auto* kernel = fused_add_rms_norm_kernel<scalar_t, 8>;
    if (packs <= threads)
      kernel = fused_add_rms_norm_kernel<scalar_t, 1>;
    else if (packs <= 2 * threads || threads > 256)  // more registers than so many threads may have
      kernel = fused_add_rms_norm_kernel<scalar_t, 2>;
    else if (packs <= 4 * threads)
      kernel = fused_add_rms_norm_kernel<scalar_t, 4>;
    const int64_t blocks = std::min(call.num_tokens, resident_blocks(kernel, static_cast<int>(threads)));
    kernel<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
        static_cast<scalar_t*>(call.input), call.input_stride, static_cast<scalar_t*>(call.residual),
        static_cast<const scalar_t*>(call.weight), call.epsilon, call.num_tokens, call.hidden_size);
  });
}

inline const Stage<FusedAddRmsNorm> stage{"09_persistent",
                                          "fused_add_rms_norm, as many blocks as fit, each with many tokens", launch};

}  // namespace ladder::serving::persistent
