// 07_generic: the document's generic fused_add_rms_norm_kernel after its changes: any type, one element per access,
// unrolled four times, and (scalar_t)((x * rms_scale) * w) in place of two roundings.
//
// It removes one of two roundings of each result, so it computes other bits than the stages before; its oracle is
// another one too. It leaves: accesses of one element per lane (counter: global load requests, eight times those of
// 06).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::generic {

template <class scalar_t>
__global__ void fused_add_rms_norm_kernel(scalar_t* __restrict__ input, int64_t input_stride,
                                          scalar_t* __restrict__ residual, const scalar_t* __restrict__ weight,
                                          float epsilon, int64_t hidden_size) {
  scalar_t* input_row = input + blockIdx.x * input_stride;
  scalar_t* residual_row = residual + blockIdx.x * hidden_size;
  __shared__ float s_variance;

  float sum = 0.0f;
#pragma unroll 4
  for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const scalar_t z = added(input_row[idx], residual_row[idx]);
    sum += to_float(z) * to_float(z);
    residual_row[idx] = z;
  }
  const float variance = block_reduce_sum(sum);
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();
  const float rms_scale = s_variance;

#pragma unroll 4
  for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const float x = to_float(residual_row[idx]), w = to_float(weight[idx]);
    input_row[idx] = from_float<scalar_t>((x * rms_scale) * w);
  }
}

inline void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    fused_add_rms_norm_kernel<<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
        static_cast<scalar_t*>(call.input), call.input_stride, static_cast<scalar_t*>(call.residual),
        static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

inline const Stage<FusedAddRmsNormOnce> stage{"07_generic",
                                              "fused_add_rms_norm for any type: an element per access, one rounding",
                                              launch,
                                              {0, FusedAddRmsNormOnce::refuses}};

}  // namespace ladder::serving::generic
