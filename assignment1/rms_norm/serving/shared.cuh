// Device functions that more than one stage of the serving ladder uses. The stage that introduces a function says so:
// vectors and sum_of_squares in 01, warpReduceSum and block_reduce_sum in 02.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

namespace ladder::serving {

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }

template <class scalar_t>
__device__ scalar_t from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline __half from_float<__half>(float value) {
  return __float2half(value);
}
template <>
__device__ inline __nv_bfloat16 from_float<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

// (scalar_t)normalized * weight, rounded twice. The product of two numbers of 16 bits is exact in float32.
template <class scalar_t>
__device__ scalar_t times_weight(float normalized, scalar_t weight) {
  return from_float<scalar_t>(to_float(from_float<scalar_t>(normalized)) * to_float(weight));
}

// a + b, rounded to the type.
template <class scalar_t>
__device__ scalar_t added(scalar_t a, scalar_t b) {
  return from_float<scalar_t>(to_float(a) + to_float(b));
}

constexpr int kVecSize = 8;  // the document's VEC_SIZE

// Eight elements side by side: one access of 16 bytes for 16-bit types, two for float.
template <class scalar_t>
struct alignas(16) vec_n_t {
  scalar_t val[kVecSize];
};

template <class scalar_t>
__device__ vec_n_t<scalar_t> load_vec(const scalar_t* from) {
  vec_n_t<scalar_t> vec;
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof vec / 16); ++i)
    reinterpret_cast<uint4*>(vec.val)[i] = reinterpret_cast<const uint4*>(from)[i];
  return vec;
}
template <class scalar_t>
__device__ void store_vec(scalar_t* to, const vec_n_t<scalar_t>& vec) {
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof vec / 16); ++i)
    reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(vec.val)[i];
}

// Whether all of them may be accessed in pieces of 16 bytes.
__device__ inline bool aligned_16(const void* a, const void* b, const void* c) {
  return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b) | reinterpret_cast<uintptr_t>(c)) % 16 == 0;
}

// A thread's part of the sum of a row's squares: vectors from the first address that is a multiple of 16 bytes on, the
// elements before and after them one by one.
template <class scalar_t, int kUnroll = 1>
__device__ float sum_of_squares(const scalar_t* row, int64_t hidden_size) {
  const int64_t misaligned = static_cast<int64_t>(reinterpret_cast<uintptr_t>(row) % 16 / sizeof(scalar_t));
  const int64_t before = misaligned == 0 ? 0 : static_cast<int64_t>(16 / sizeof(scalar_t)) - misaligned;
  const int64_t head = before < hidden_size ? before : hidden_size;
  const int64_t end = head + (hidden_size - head) / kVecSize * kVecSize;
  float sum = 0.0f;
#pragma unroll kUnroll
  for (int64_t i = head + threadIdx.x * kVecSize; i < end; i += blockDim.x * kVecSize) {
    const vec_n_t<scalar_t> vec = load_vec(row + i);
#pragma unroll
    for (const scalar_t& element : vec.val) sum += to_float(element) * to_float(element);
  }
  for (int64_t i = threadIdx.x; i < head; i += blockDim.x) sum += to_float(row[i]) * to_float(row[i]);
  for (int64_t i = end + threadIdx.x; i < hidden_size; i += blockDim.x) sum += to_float(row[i]) * to_float(row[i]);
  return sum;
}

__device__ inline float warpReduceSum(float val) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) val += __shfl_xor_sync(0xffffffffu, val, offset);
  return val;
}

// Thread 0 gets the sum of its block's values. Whole warps, at most 32 of them; one barrier.
__device__ inline float block_reduce_sum(float val) {
  __shared__ float warp_sums[32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  val = warpReduceSum(val);
  if (lane == 0) warp_sums[warp] = val;
  __syncthreads();
  if (warp == 0) val = warpReduceSum(lane < blockDim.x / 32 ? warp_sums[lane] : 0.0f);
  return val;
}

// Threads of a block for rows of so many items: whole warps, and many small blocks if there are many rows.
inline unsigned block_size(int64_t num_tokens, int64_t items) {
  return static_cast<unsigned>(std::clamp<int64_t>((items + 31) / 32 * 32, 32, num_tokens < 256 ? 1024 : 256));
}

}  // namespace ladder::serving
