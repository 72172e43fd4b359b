#pragma once

#include "header.h"

#ifndef __SIMT__
#include "common/cuda_check.h"
#include "include/rms_norm/rms_norm.cuh"

namespace ladder::serving {

// In the rounding of the stages.
template <class scalar_t>
void header_of(const ServingCall& call, cudaStream_t stream) {
  rms_norm::Options options;
  options.eps = call.epsilon;
  options.rounding = rms_norm::Rounding::llama;
  const rms_norm::Tensor<scalar_t> input{static_cast<scalar_t*>(call.input), {call.input_stride}};
  auto *out = static_cast<scalar_t*>(call.out), *residual = static_cast<scalar_t*>(call.residual);
  const auto* weight = static_cast<const scalar_t*>(call.weight);
  if (residual == nullptr)
    CUDA_CHECK(rms_norm::forward(input, weight, out, call.num_tokens, call.hidden_size, options, stream));
  else
    CUDA_CHECK(rms_norm::fused_add_rms_norm(input, residual, residual, weight, input, call.num_tokens, call.hidden_size,
                                            options, stream));
}

}  // namespace ladder::serving
#else
namespace ladder::serving {

template <class scalar_t>
void header_of(const ServingCall&, cudaStream_t) {}

}  // namespace ladder::serving
#endif
