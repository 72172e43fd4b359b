// 03_vectorized: the document's rms_norm_kernel after its changes: the second pass too moves eight elements at a time.
//
// It removes seven of eight load and store instructions of the second pass (counter: global load requests). The bytes
// stay the same. The original converts every address; this one looks whether the row, the weight and the result are
// aligned, and goes element by element where they are not.
// It leaves: the row that is read twice (counter: bytes that loads ask for).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::vectorized {

template <class scalar_t>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input, int64_t input_stride,
                                const scalar_t* __restrict__ weight, float epsilon, int64_t hidden_size) {
  const scalar_t* input_row = input + blockIdx.x * input_stride;
  scalar_t* out_row = out + blockIdx.x * hidden_size;
  __shared__ float s_variance;

  const float variance = block_reduce_sum(sum_of_squares(input_row, hidden_size));
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();

  const bool aligned = aligned_16(input_row, weight, out_row);
  const int64_t num_vec_elems = aligned ? hidden_size / kVecSize * kVecSize : 0;
  for (int64_t idx = threadIdx.x * kVecSize; idx < num_vec_elems; idx += blockDim.x * kVecSize) {
    const vec_n_t<scalar_t> in_vec = load_vec(input_row + idx), weight_vec = load_vec(weight + idx);
    vec_n_t<scalar_t> out_vec;
#pragma unroll
    for (int i = 0; i < kVecSize; ++i)
      out_vec.val[i] = times_weight(to_float(in_vec.val[i]) * s_variance, weight_vec.val[i]);
    store_vec(out_row + idx, out_vec);
  }
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x)
    out_row[idx] = times_weight(to_float(input_row[idx]) * s_variance, weight[idx]);
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

inline const Stage<RmsNormServing> stage{"03_vectorized",
                                         "rms_norm after: eight elements per access in the second pass too",
                                         launch,
                                         {0, RmsNormServing::refuses}};

}  // namespace ladder::serving::vectorized
