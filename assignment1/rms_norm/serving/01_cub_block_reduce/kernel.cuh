// 01_cub_block_reduce: the document's rms_norm_kernel before its changes: a block per token, NVIDIA's CUB for the sum,
// and a second pass that reads and writes element by element.
//
// It leaves: accesses of one element per lane in the second pass (counter: global load requests there, eight times
// those of 03), and the row that is read twice (counter: bytes that loads ask for).
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::cub_block_reduce {

constexpr int kMostThreads = 1024;

// The engine declares the collective for 1024 threads and launches fewer; num_valid says how many there are.
template <class scalar_t>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input, int64_t input_stride,
                                const scalar_t* __restrict__ weight, float epsilon, int64_t hidden_size) {
  using BlockReduce = cub::BlockReduce<float, kMostThreads>;
  __shared__ typename BlockReduce::TempStorage reduce_store;
  __shared__ float s_variance;

  const float variance =
      BlockReduce(reduce_store)
          .Sum(sum_of_squares(input + blockIdx.x * input_stride, hidden_size), static_cast<int>(blockDim.x));
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
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
    "01_cub_block_reduce", "rms_norm before: CUB's sum, a scalar second pass", launch, {0, RmsNormServing::refuses}};

}  // namespace ladder::serving::cub_block_reduce
