// rms_norm and fused_add_rms_norm of 01 and 04 with each change of the document as a parameter of a template, so that
// one change can be switched on while the others are off.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>
#include <type_traits>

#include "assignment1/rms_norm/serving/shared.cuh"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::controls {

enum class Sum { cub, warps };      // CUB's, or warpReduceSum and the sums of the warps
enum class Second { scalar, vec };  // the second pass: an element per access, or eight
enum class Rows { each, once };     // where a row begins: computed for each element, or once for the thread

constexpr int kMostThreads = 1024;

// Thread 0 gets the sum of its block's values.
template <Sum kSum>
__device__ float block_sum(float value) {
  if constexpr (kSum == Sum::warps) {
    return block_reduce_sum(value);
  } else {
    using BlockReduce = cub::BlockReduce<float, kMostThreads>;
    __shared__ typename BlockReduce::TempStorage reduce_store;
    return BlockReduce(reduce_store).Sum(value, static_cast<int>(blockDim.x));
  }
}

template <class scalar_t, Sum kSum, Second kSecond, Rows kRows, int kUnroll>
__global__ void rms_norm_kernel(scalar_t* __restrict__ out, const scalar_t* __restrict__ input, int64_t input_stride,
                                const scalar_t* __restrict__ weight, float epsilon, int64_t hidden_size) {
  const scalar_t* input_row = input + blockIdx.x * input_stride;
  scalar_t* out_row = out + blockIdx.x * hidden_size;
  __shared__ float s_variance;

  const float variance = block_sum<kSum>(sum_of_squares<scalar_t, kUnroll>(input_row, hidden_size));
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();

  const bool vectors = kSecond == Second::vec && aligned_16(input_row, weight, out_row);
  const int64_t num_vec_elems = vectors ? hidden_size / kVecSize * kVecSize : 0;
#pragma unroll kUnroll
  for (int64_t idx = threadIdx.x * kVecSize; idx < num_vec_elems; idx += blockDim.x * kVecSize) {
    vec_n_t<scalar_t> vec = load_vec(input_row + idx);
    const vec_n_t<scalar_t> weight_vec = load_vec(weight + idx);
#pragma unroll
    for (int i = 0; i < kVecSize; ++i) vec.val[i] = times_weight(to_float(vec.val[i]) * s_variance, weight_vec.val[i]);
    store_vec(out_row + idx, vec);
  }
#pragma unroll kUnroll
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    if constexpr (kRows == Rows::once) {
      out_row[idx] = times_weight(to_float(input_row[idx]) * s_variance, weight[idx]);
    } else {
      const float x = to_float(input[blockIdx.x * input_stride + idx]);
      out[blockIdx.x * hidden_size + idx] = times_weight(x * s_variance, weight[idx]);
    }
  }
}

template <Sum kSum, Second kSecond, Rows kRows = Rows::each, int kUnroll = 1>
void launch(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  const unsigned threads = block_size(call.num_tokens, call.hidden_size);
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    rms_norm_kernel<scalar_t, kSum, kSecond, kRows, kUnroll>
        <<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
            static_cast<scalar_t*>(call.out), static_cast<const scalar_t*>(call.input), call.input_stride,
            static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

// kVectors: eight elements per access, which the document has for half and bfloat16, or one.
template <class scalar_t, Sum kSum, bool kVectors, int kUnroll>
__global__ void fused_add_rms_norm_kernel(scalar_t* __restrict__ input, int64_t input_stride,
                                          scalar_t* __restrict__ residual, const scalar_t* __restrict__ weight,
                                          float epsilon, int64_t hidden_size) {
  scalar_t* input_row = input + blockIdx.x * input_stride;
  scalar_t* residual_row = residual + blockIdx.x * hidden_size;
  const bool vectors = kVectors && aligned_16(input_row, residual_row, weight);
  const int64_t num_vec_elems = vectors ? hidden_size / kVecSize * kVecSize : 0;
  __shared__ float s_variance;

  float sum = 0.0f;
#pragma unroll kUnroll
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
#pragma unroll kUnroll
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x) {
    const scalar_t temp = added(input_row[idx], residual_row[idx]);
    sum += to_float(temp) * to_float(temp);
    residual_row[idx] = temp;
  }
  const float variance = block_sum<kSum>(sum);
  if (threadIdx.x == 0) s_variance = rsqrtf(variance / static_cast<float>(hidden_size) + epsilon);
  __syncthreads();

#pragma unroll kUnroll
  for (int64_t idx = threadIdx.x * kVecSize; idx < num_vec_elems; idx += blockDim.x * kVecSize) {
    vec_n_t<scalar_t> temp = load_vec(residual_row + idx);
    const vec_n_t<scalar_t> weight_vec = load_vec(weight + idx);
#pragma unroll
    for (int i = 0; i < kVecSize; ++i)
      temp.val[i] = times_weight(to_float(temp.val[i]) * s_variance, weight_vec.val[i]);
    store_vec(input_row + idx, temp);
  }
#pragma unroll kUnroll
  for (int64_t idx = num_vec_elems + threadIdx.x; idx < hidden_size; idx += blockDim.x)
    input_row[idx] = times_weight(to_float(residual_row[idx]) * s_variance, weight[idx]);
}

template <Sum kSum, int kUnroll = 1, bool kVectorsOf16Bits = true>
void launch_fused(const ServingCall& call, cudaStream_t stream) {
  if (call.num_tokens == 0) return;
  dispatch(call.dtype, [&](auto* type) {
    using scalar_t = std::remove_pointer_t<decltype(type)>;
    constexpr bool vectors = kVectorsOf16Bits && sizeof(scalar_t) == 2;
    const unsigned threads = block_size(call.num_tokens, vectors ? call.hidden_size / kVecSize : call.hidden_size);
    fused_add_rms_norm_kernel<scalar_t, kSum, vectors, kUnroll>
        <<<static_cast<unsigned>(call.num_tokens), threads, 0, stream>>>(
            static_cast<scalar_t*>(call.input), call.input_stride, static_cast<scalar_t*>(call.residual),
            static_cast<const scalar_t*>(call.weight), call.epsilon, call.hidden_size);
  });
}

}  // namespace ladder::serving::controls
