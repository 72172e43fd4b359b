// The six kernels with each optimization of the document as a parameter of a template.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cub/block/block_reduce.cuh>

#include "assignment1/rms_norm/inference/shared.cuh"

namespace ladder::inference::controls {

// What is switched on.
enum Switch : unsigned {
  nothing = 0,
  shuffle = 1,       // shuffles in place of cub::BlockReduce
  restricted = 2,    // __restrict__
  unrolled = 4,      // #pragma unroll 4
  ldg = 8,           // the weight by __ldg
  fixed_block = 16,  // the number of threads is a template parameter, in place of blockDim.x
  wide = 32,         // 64-bit loads of a float16 weight, 128-bit accesses of float16 elements
  everything = 63,
};

// kCount elements in one access: of one element, or of a vector as wide as they are.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vector {
  T elements[kCount];
};

__device__ inline float wide_of(float value) { return value; }
__device__ inline float wide_of(__half value) { return __half2float(value); }
__device__ inline void set(float* at, float value) { *at = value; }
__device__ inline void set(__half* at, float value) { *at = __float2half(value); }

// The bits of a vector as CUDA's own type of that size, which __ldg takes.
template <int kBytes>
struct Bits;
template <>
struct Bits<2> {
  using Type = unsigned short;
};
template <>
struct Bits<4> {
  using Type = unsigned;
};
template <>
struct Bits<8> {
  using Type = uint2;
};
template <>
struct Bits<16> {
  using Type = uint4;
};

template <class T, int kCount, bool kLdg>
__device__ void load(const T* from, float (&to)[kCount]) {
  using Raw = typename Bits<sizeof(T) * kCount>::Type;
  const auto* at = reinterpret_cast<const Raw*>(from);
  const Raw raw = kLdg ? __ldg(at) : *at;
  const auto* elements = reinterpret_cast<const T*>(&raw);
#pragma unroll
  for (int k = 0; k < kCount; ++k) to[k] = wide_of(elements[k]);
}

template <class T, int kCount>
__device__ void store(T* to, const float (&from)[kCount]) {
  using Raw = typename Bits<sizeof(T) * kCount>::Type;
  Raw raw;
  auto* elements = reinterpret_cast<T*>(&raw);
#pragma unroll
  for (int k = 0; k < kCount; ++k) set(elements + k, from[k]);
  *reinterpret_cast<Raw*>(to) = raw;
}

// Of a type pair: elements of a row in one access, and of its weight.
template <class T, class W, unsigned switches>
struct Widths {
  static constexpr bool kIsWide = (switches & wide) != 0;
  static constexpr int kRow = sizeof(T) == 4 ? 4 : kIsWide ? 8 : 2;
  static constexpr int kWeight = sizeof(W) == 4 || sizeof(T) == 2 ? kRow : kIsWide ? 4 : 1;
};

template <class T, class W, int kThreads, unsigned switches>
__device__ __forceinline__ void normalize_row(const T* in, const W* wei, T* out, int size, float eps) {
  using Width = Widths<T, W, switches>;
  constexpr int kRow = Width::kRow, kWeight = Width::kWeight;
  [[maybe_unused]] constexpr int kUnroll = (switches & unrolled) ? 4 : 1;  // g++ does not look into a pragma
  constexpr bool kLdg = (switches & ldg) != 0;
  const int tid = threadIdx.x, step = (switches & fixed_block) ? kThreads : static_cast<int>(blockDim.x);
  using RowVector = Vector<T, kRow>;
  using WeightVector = Vector<W, kWeight>;
  const int pack_num = aligned_for<RowVector, WeightVector>(in, wei, out) ? size / kRow : 0, pack_off = kRow * pack_num;

  float sum = 0.0f;
#pragma unroll kUnroll
  for (int i = tid; i < pack_num; i += step) {
    float x[kRow];
    load<T, kRow, false>(in + kRow * i, x);
#pragma unroll
    for (int k = 0; k < kRow; ++k) sum += x[k] * x[k];
  }
  for (int i = pack_off + tid; i < size; i += step) sum += wide_of(in[i]) * wide_of(in[i]);

  if constexpr ((switches & shuffle) != 0) {
    __shared__ float smem_reduce[kThreads / 32];
    sum = block_reduce_sum<kThreads>(sum, smem_reduce);
  } else {
    using BlockReduce = cub::BlockReduce<float, kThreads>;
    __shared__ typename BlockReduce::TempStorage temp;
    __shared__ float shared_val;
    sum = BlockReduce(temp).Sum(sum);
    if (tid == 0) shared_val = sum;
    __syncthreads();
    sum = shared_val;
  }
  const float scale = rsqrtf(sum / static_cast<float>(size) + eps);

#pragma unroll kUnroll
  for (int i = tid; i < pack_num; i += step) {
    float x[kRow], w[kRow];
    load<T, kRow, false>(in + kRow * i, x);
#pragma unroll
    for (int k = 0; k < kRow; k += kWeight) {
      float part[kWeight];
      load<W, kWeight, kLdg>(wei + kRow * i + k, part);
#pragma unroll
      for (int j = 0; j < kWeight; ++j) w[k + j] = part[j];
    }
#pragma unroll
    for (int k = 0; k < kRow; ++k) x[k] = scale * x[k] * w[k];
    store<T, kRow>(out + kRow * i, x);
  }
  for (int i = pack_off + tid; i < size; i += step) set(out + i, scale * wide_of(in[i]) * wide_of(wei[i]));
}

// A block for each row; a single row is a grid of one block.
template <class T, class W, int kThreads, unsigned switches>
__global__ void row_rmsnorm_dim(const T* in, const W* wei, T* out, int size, float eps) {
  const int64_t bid = blockIdx.x;
  normalize_row<T, W, kThreads, switches>(in + bid * size, wei, out + bid * size, size, eps);
}
template <class T, class W, int kThreads, unsigned switches>
__global__ void row_rmsnorm_dim_restricted(const T* __restrict__ in, const W* __restrict__ wei, T* __restrict__ out,
                                           int size, float eps) {
  const int64_t bid = blockIdx.x;
  normalize_row<T, W, kThreads, switches>(in + bid * size, wei, out + bid * size, size, eps);
}

template <class T, class W, unsigned switches, int kThreads = 128>
void launch(const T* in, const W* wei, T* out, int64_t rows, int64_t cols, float eps, cudaStream_t stream) {
  const auto grid = static_cast<unsigned>(rows);
  const int size = static_cast<int>(cols);
  if (rows == 0) return;  // a grid of no blocks is a launch error
  if constexpr ((switches & restricted) != 0)
    row_rmsnorm_dim_restricted<T, W, kThreads, switches><<<grid, kThreads, 0, stream>>>(in, wei, out, size, eps);
  else
    row_rmsnorm_dim<T, W, kThreads, switches><<<grid, kThreads, 0, stream>>>(in, wei, out, size, eps);
}

}  // namespace ladder::inference::controls
