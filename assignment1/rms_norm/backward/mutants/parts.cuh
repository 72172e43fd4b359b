// The right parts of 01_basic, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::mutants::parts {

// What a mutant replaces one function of.
struct Right {
  template <class T>
  static __device__ float factor(const Tensors<T>& t, int64_t col) {
    return weight_factor(t, col);
  }
  template <class T>
  static __device__ RowFactors factors(const Tensors<T>& t, int64_t row, float2 sums) {
    return row_factors(t, row, sums);
  }
  // Without dsum.
  static __device__ float gradient(float g, float x, RowFactors row_is) { return row_is.rstd * (g - x * row_is.slope); }
  template <class T>
  static __device__ float term(const Tensors<T>& t, int64_t row, int64_t col) {
    const int64_t i = row * t.cols + col;
    return static_cast<float>(t.dy[i]) * (static_cast<float>(t.x[i]) * t.row_scratch[row]);
  }
  template <class T>
  static __device__ float column(const Tensors<T>& t, int64_t col) {
    float sum = 0.0f;
    for (int64_t row = 0; row < t.rows; ++row) sum += term(t, row, col);
    return sum;
  }
};

template <class Body, class T>
__global__ void dx_kernel(const Tensors<T> t) {
  __shared__ float2 warp_sums[32];
  const int64_t row = blockIdx.x, begin = row * t.cols;
  float2 sums = make_float2(0.0f, 0.0f);
  for (int64_t col = threadIdx.x; col < t.cols; col += blockDim.x) {
    const auto x = static_cast<float>(t.x[begin + col]);
    sums.x += x * x;
    sums.y += static_cast<float>(t.dy[begin + col]) * Body::factor(t, col) * x;
  }
  const RowFactors row_is = Body::factors(t, row, block_sums(sums, warp_sums));
  for (int64_t col = threadIdx.x; col < t.cols; col += blockDim.x) {
    const float g = static_cast<float>(t.dy[begin + col]) * Body::factor(t, col);
    const float dx = Body::gradient(g, static_cast<float>(t.x[begin + col]), row_is);
    t.dx[begin + col] = static_cast<T>(t.dsum == nullptr ? dx : dx + static_cast<float>(t.dsum[begin + col]));
  }
  if (threadIdx.x == 0) t.row_scratch[row] = row_is.rstd;
}
template <class Body, class T>
__global__ void dweight_kernel(const Tensors<T> t) {
  const int64_t col = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (col < t.cols) t.dweight[col] = static_cast<T>(Body::column(t, col));
}

// dx and each row's rstd.
template <class Body, class T>
void launch_dx(const Tensors<T>& t, cudaStream_t stream) {
  if (t.rows > 0) dx_kernel<Body, T><<<static_cast<unsigned>(t.rows), 128, 0, stream>>>(t);
}
template <class Body>
void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    using T = std::decay_t<decltype(*type)>;
    launch_dx<Body>(t, stream);
    if (t.dweight == nullptr) return;
    dweight_kernel<Body, T><<<static_cast<unsigned>(blocks_for(t.cols, 128)), 128, 0, stream>>>(t);
  });
}

// Of a mutant whose dweight comes by a kernel of its own: Body::run(t), 32 columns and 8 threads for the rows of each
// per block, after rows of partial sums that its launch may have written.
template <class Body, class T>
__global__ void tile_kernel(const Tensors<T> t) {
  Body::run(t);
}
template <class Body>
void launch_tiles(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    using T = std::decay_t<decltype(*type)>;
    launch_dx<Right>(t, stream);
    if (t.dweight == nullptr) return;
    tile_kernel<Body, T><<<static_cast<unsigned>(blocks_for(t.cols, 32)), dim3(32, 8), 0, stream>>>(t);
  });
}

}  // namespace ladder::backward::mutants::parts
