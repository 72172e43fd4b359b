// 02_warp_reduction: the document's first change to rms_norm_kernel: warpReduceSum, then the sums of the warps through
// shared memory, in place of CUB.
//
// It removes CUB's own order of the last step, in which thread 0 adds up the sums of all warps one after the other
// (counter: shared loads of one lane). It has as many barriers, because one thread still computes the factor for all.
// It leaves: accesses of one element per lane in the second pass.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::warp_reduction {

__device__ inline float warpReduceSum(float val) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xffffffffu, val, offset);
  return val;
}

template <class scalar_t>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input, int64_t input_stride,
                                const scalar_t* __restrict__ weight, float epsilon, int64_t hidden_size) {
  __shared__ float warp_sums[32];
  __shared__ float s_variance;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;

  float variance = warp_reduction::warpReduceSum(sum_of_squares(input + blockIdx.x * input_stride, hidden_size));
  if (lane == 0) warp_sums[warp] = variance;
  __syncthreads();
  if (warp == 0) {
    variance = warp_reduction::warpReduceSum(lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f);
    if (lane == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  }
  __syncthreads();

  for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const float x = to_float(input[blockIdx.x * input_stride + idx]);
    out[blockIdx.x * hidden_size + idx] = times_weight(x * s_variance, weight[idx]);
  }
}

inline void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    rms_norm_kernel<<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
        static_cast<scalar_t*>(call.out), static_cast<const scalar_t*>(call.input), call.input_stride,
        static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

inline const Stage<RmsNormServing> stage{
    "02_warp_reduction", "rms_norm, sum by shuffles within warps", launch, {0, RmsNormServing::refuses}};

}  // namespace ladder::serving::warp_reduction
