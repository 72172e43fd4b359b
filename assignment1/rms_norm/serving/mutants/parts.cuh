// The right parts of rms_norm and fused_add_rms_norm, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::mutants::parts {

// Every thread gets the factor of its block's row.
__device__ inline float row_scale(float sum, int64_t hidden_size, float epsilon) {
  __shared__ float scale;
  const float all = block_reduce_sum(sum);
  if (threadIdx.x == 0) scale = rsqrtf(all / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();
  return scale;
}

template <class scalar_t>
__device__ void normalize(const scalar_t* from, const scalar_t* weight, scalar_t* to, int64_t hidden_size,
                          float scale) {
  for (int64_t idx = threadIdx.x; idx < hidden_size; idx += blockDim.x)
    to[idx] = times_weight(to_float(from[idx]) * scale, weight[idx]);
}

// Body is a struct whose run<scalar_t>() is what a block does with a row.
template <class Body, class scalar_t>
__global__ void rms_norm_kernel(scalar_t* out, const scalar_t* input, int64_t input_stride, const scalar_t* weight,
                                float epsilon, int64_t hidden_size) {
  Body::run(out, input, input_stride, weight, epsilon, hidden_size);
}
template <class Body, class scalar_t>
__global__ void fused_add_rms_norm_kernel(scalar_t* input, int64_t input_stride, scalar_t* residual,
                                          const scalar_t* weight, float epsilon, int64_t hidden_size) {
  Body::run(input + blockIdx.x * input_stride, residual + blockIdx.x * hidden_size, weight, epsilon, hidden_size);
}

template <class Body>
void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    rms_norm_kernel<Body, scalar_t><<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
        static_cast<scalar_t*>(call.out), static_cast<const scalar_t*>(call.input), call.input_stride,
        static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}
template <class Body>
void launch_fused(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    fused_add_rms_norm_kernel<Body, scalar_t><<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
        static_cast<scalar_t*>(call.input), call.input_stride, static_cast<scalar_t*>(call.residual),
        static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

}  // namespace ladder::serving::mutants::parts
