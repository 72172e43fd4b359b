// What more than one stage of the backward ladder uses. The stage that introduces something says so.
#pragma once

#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/rms_norm_backward.h"

namespace ladder::backward {

// A call's tensors with their type; common/operators/rms_norm_backward.h says what each of them is.
template <class T>
struct Tensors {
  const T *dy, *x, *weight, *dsum;
  const float* rstd;
  T *dx, *dweight;
  float *row_scratch, *partial;
  int64_t rows, cols;
  float eps, weight_offset;
};

template <class T>
Tensors<T> tensors_of(const BackwardCall& c, const T*) {
  return {static_cast<const T*>(c.dy),
          static_cast<const T*>(c.x),
          static_cast<const T*>(c.weight),
          static_cast<const T*>(c.dsum),
          c.rstd,
          static_cast<T*>(c.dx),
          static_cast<T*>(c.dweight),
          c.row_scratch,
          c.partial,
          c.rows,
          c.cols,
          c.eps,
          c.weight_offset};
}

// weight_offset + weight of a column; 1 without a weight.
template <class T>
__device__ float weight_factor(const Tensors<T>& t, int64_t col) {
  return t.weight == nullptr ? 1.0f : t.weight_offset + static_cast<float>(t.weight[col]);
}

// Every thread gets both sums over its block: whole warps, at most 32; warp_sums: 32 of them. One barrier: a second
// call needs another barrier in between, or 32 other places.
__device__ inline float2 block_sums(float2 value, float2* warp_sums) {
  value = make_float2(warp_reduce_sum(value.x), warp_reduce_sum(value.y));
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = threadIdx.x % 32 < blockDim.x / 32 ? warp_sums[threadIdx.x % 32] : make_float2(0.0f, 0.0f);
  return make_float2(warp_reduce_sum(value.x), warp_reduce_sum(value.y));
}

// What a row's sums of x² (in .x) and of g · x (in .y) become: dx = rstd · (g - x · slope) + dsum.
struct RowFactors {
  float rstd, slope;
};
template <class T>
__device__ RowFactors row_factors(const Tensors<T>& t, int64_t row, float2 sums) {
  const auto cols = static_cast<float>(t.cols);
  const float rstd = t.rstd == nullptr ? rsqrtf(sums.x / cols + t.eps) : t.rstd[row];
  return {rstd, rstd * rstd * (sums.y / cols)};
}

// dx of a row, and its rstd for the kernel that comes after: 01_basic.
template <class T>
__device__ void write_dx_and_rstd(const Tensors<T>& t, int64_t row) {
  __shared__ float2 warp_sums[32];
  const int64_t begin = row * t.cols;
  float2 sums = make_float2(0.0f, 0.0f);
  for (int64_t col = threadIdx.x; col < t.cols; col += blockDim.x) {
    const auto x = static_cast<float>(t.x[begin + col]);
    sums.x += x * x;
    sums.y += static_cast<float>(t.dy[begin + col]) * weight_factor(t, col) * x;
  }
  const RowFactors row_is = row_factors(t, row, block_sums(sums, warp_sums));
  for (int64_t col = threadIdx.x; col < t.cols; col += blockDim.x) {
    const float g = static_cast<float>(t.dy[begin + col]) * weight_factor(t, col);
    const float dx = row_is.rstd * (g - static_cast<float>(t.x[begin + col]) * row_is.slope);
    t.dx[begin + col] = static_cast<T>(t.dsum == nullptr ? dx : dx + static_cast<float>(t.dsum[begin + col]));
  }
  if (threadIdx.x == 0) t.row_scratch[row] = row_is.rstd;
}

// dweight from `count` rows of partial sums, by blocks of 32 × 32 threads: threads side by side take columns, and what
// threads above each other add up meets in shared memory. 04_column_tiles does so with the terms themselves.
constexpr int kTile = 32;
template <class T>
__device__ void add_partial_sums(const Tensors<T>& t, int64_t count) {
  __shared__ float tile[kTile][kTile + 1];
  const int64_t col = int64_t{blockIdx.x} * kTile + threadIdx.x;
  float sum = 0.0f;
  if (col < t.cols)
    for (int64_t i = threadIdx.y; i < count; i += kTile) sum += t.partial[i * t.cols + col];
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_reduce_sum(tile[threadIdx.x][threadIdx.y]);
  const int64_t own = int64_t{blockIdx.x} * kTile + threadIdx.y;
  if (threadIdx.x == 0 && own < t.cols) t.dweight[own] = static_cast<T>(sum);
}
template <class T>
__global__ void __launch_bounds__(kTile* kTile) partial_sums_kernel(const Tensors<T> t, int64_t count) {
  add_partial_sums(t, count);
}

// Columns that a thread keeps, and the threads of a block that keeps a row of at most 8192: from 05_partial_sums on.
constexpr int kColumns = 8;
constexpr int kMostThreads = 1024;
inline unsigned threads_for(int64_t cols) { return static_cast<unsigned>(blocks_for(cols, kColumns * 32) * 32); }

// Eight columns of a thread: 16 bytes of a 16-bit type, 32 of float. 07_vectorized.
template <class T>
struct alignas(16) Pack {
  T values[kColumns];
  static constexpr int kVectors = kColumns * sizeof(T) / 16;
};

// From `columns` elements on nothing is read or written. vector: the address is a multiple of 16 bytes, and all eight
// are there.
template <class T>
__device__ Pack<T> load_pack(const T* from, bool vector, int64_t columns) {
  Pack<T> pack = {};
  if (vector) {
#pragma unroll
    for (int i = 0; i < Pack<T>::kVectors; ++i)
      reinterpret_cast<uint4*>(pack.values)[i] = reinterpret_cast<const uint4*>(from)[i];
  } else {
#pragma unroll
    for (int i = 0; i < kColumns; ++i)
      if (i < columns) pack.values[i] = from[i];
  }
  return pack;
}
template <class T>
__device__ void store_pack(T* to, const Pack<T>& pack, bool vector, int64_t columns) {
  if (vector) {
#pragma unroll
    for (int i = 0; i < Pack<T>::kVectors; ++i)
      reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(pack.values)[i];
  } else {
#pragma unroll
    for (int i = 0; i < kColumns; ++i)
      if (i < columns) to[i] = pack.values[i];
  }
}

// Whether every row's packs are whole and at multiples of 16 bytes. A null pointer counts as aligned.
template <class T>
bool takes_vectors(const Tensors<T>& t) {
  const auto bits = reinterpret_cast<uintptr_t>(t.dy) | reinterpret_cast<uintptr_t>(t.x) |
                    reinterpret_cast<uintptr_t>(t.weight) | reinterpret_cast<uintptr_t>(t.dsum) |
                    reinterpret_cast<uintptr_t>(t.dx);
  return bits % 16 == 0 && t.cols % kColumns == 0;
}

// weight_offset + weight of a thread's eight columns. 07_vectorized.
template <class T>
__device__ Pack<float> weight_factors(const Tensors<T>& t, int64_t first, bool vector, int64_t columns) {
  const Pack<T> weight = t.weight == nullptr ? Pack<T>{} : load_pack(t.weight + first, vector, columns);
  Pack<float> factors;
#pragma unroll
  for (int i = 0; i < kColumns; ++i)
    factors.values[i] = t.weight == nullptr ? 1.0f : t.weight_offset + static_cast<float>(weight.values[i]);
  return factors;
}

// What a thread does with its eight columns of a row once it has them in registers. 07_vectorized.
template <class T>
__device__ float2 sums_of(const Pack<T>& dy, const Pack<T>& x, const Pack<float>& factor) {
  float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const auto value = static_cast<float>(x.values[i]);
    sums.x += value * value;
    sums.y += static_cast<float>(dy.values[i]) * factor.values[i] * value;
  }
  return sums;
}
template <class T>
__device__ Pack<T> gradients(const Pack<T>& dy, const Pack<T>& x, const Pack<T>& dsum, const Pack<float>& factor,
                             RowFactors row_is, Pack<float>& partial) {
  Pack<T> dx;
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const auto from_y = static_cast<float>(dy.values[i]), value = static_cast<float>(x.values[i]);
    partial.values[i] += from_y * (value * row_is.rstd);
    const float gradient = row_is.rstd * (from_y * factor.values[i] - value * row_is.slope);
    dx.values[i] = static_cast<T>(gradient + static_cast<float>(dsum.values[i]));
  }
  return dx;
}

// Copies a thread's packs of one row, of dy and a block's width further of x, without waiting. 08_prefetch.
template <class T>
__device__ void fetch_ahead(Pack<T>* to, const Tensors<T>& t, int64_t row, int64_t first, bool vector) {
  if (vector && row < t.rows)
#pragma unroll
    for (int i = 0; i < Pack<T>::kVectors; ++i) {
      const int64_t at = row * t.cols + first;
      __pipeline_memcpy_async(reinterpret_cast<uint4*>(to) + i, reinterpret_cast<const uint4*>(t.dy + at) + i, 16);
      __pipeline_memcpy_async(reinterpret_cast<uint4*>(to + blockDim.x) + i,
                              reinterpret_cast<const uint4*>(t.x + at) + i, 16);
    }
  __pipeline_commit();  // of every thread and row, so that they can be counted
}

constexpr int kCluster = 8;  // blocks; what every GPU with clusters can do

// 09_cluster. partial: a thread's eight columns. The blocks of a cluster leave theirs in shared memory; then each block
// adds up an eighth of the columns over all of them, in the order of the blocks, and writes it to the cluster's row.
template <class T>
__device__ void write_cluster_sums(const Tensors<T>& t, float* own, const Pack<float>& partial) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  __syncthreads();  // `own` has held rows
  store_pack(own + threadIdx.x * kColumns, partial, true, kColumns);
  cluster.sync();
  const int64_t col = int64_t{cluster.block_rank()} * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (unsigned block = 0; block < kCluster; ++block) sum += cluster.map_shared_rank(own, block)[col];
  if (t.dweight != nullptr && col < t.cols) t.partial[blockIdx.x / kCluster * t.cols + col] = sum;
  cluster.sync();  // no block ends while others read its shared memory
#endif
}

}  // namespace ladder::backward
