// 06_unrolled: the document's fused_add_rms_norm_kernel after its changes: both loops are unrolled four times.
//
// It removes some additions and jumps (counter, on a GPU: instructions). It leaves a comparison after each step, since
// blockDim.x is not known to the compiler, a store between any two loads, and the second reading of the new residual,
// so that no more bytes are in flight than before.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::unrolled {

template <class scalar_t>
__global__ void fused_add_rms_norm_kernel(scalar_t* __restrict__ input, int64_t input_stride,
                                          scalar_t* __restrict__ residual, const scalar_t* __restrict__ weight,
                                          float epsilon, int64_t hidden_size) {
  scalar_t* input_row = input + blockIdx.x * input_stride;
  scalar_t* residual_row = residual + blockIdx.x * hidden_size;
  const bool aligned = aligned_16(input_row, residual_row, weight);
  const int64_t num_vec_elems = aligned ? hidden_size / kVecSize * kVecSize : 0;
  __shared__ float s_variance;

  float sum = 0.0f;
#pragma unroll 4
  for (int64_t idx = threadIdx.x * kVecSize; idx < num_vec_elems; idx += blockDim.x * kVecSize) {
    vec_n_t<scalar_t> temp = load_vec(input_row + idx);
    const vec_n_t<scalar_t> residual_vec = load_vec(residual_row + idx);
#pragma unroll
    for (int i = 0; i < kVecSize; ++i) {
      temp.val[i] = added(temp.val[i], residual_vec.val[i]);
      sum += to_float(temp.val[i]) * to_float(temp.val[i]);
    }
    store_vec(residual_row + idx, temp);
  }
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const scalar_t temp = added(input_row[idx], residual_row[idx]);
    sum += to_float(temp) * to_float(temp);
    residual_row[idx] = temp;
  }

  const float variance = block_reduce_sum(sum);
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();

#pragma unroll 4
  for (int64_t idx = threadIdx.x * kVecSize; idx < num_vec_elems; idx += blockDim.x * kVecSize) {
    vec_n_t<scalar_t> temp = load_vec(residual_row + idx);
    const vec_n_t<scalar_t> weight_vec = load_vec(weight + idx);
#pragma unroll
    for (int i = 0; i < kVecSize; ++i)
      temp.val[i] = times_weight(to_float(temp.val[i]) * s_variance, weight_vec.val[i]);
    store_vec(input_row + idx, temp);
  }
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x)
    input_row[idx] = times_weight(to_float(residual_row[idx]) * s_variance, weight[idx]);
}

inline void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size / kVecSize);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    if constexpr (sizeof(scalar_t) == 2)
      fused_add_rms_norm_kernel<<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
          static_cast<scalar_t*>(call.input), call.input_stride, static_cast<scalar_t*>(call.residual),
          static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

inline const Stage<FusedAddRmsNorm> stage{"06_unrolled",
                                          "fused_add_rms_norm after: both loops unrolled four times",
                                          launch,
                                          {0, FusedAddRmsNorm::refuses_float}};

}  // namespace ladder::serving::unrolled
