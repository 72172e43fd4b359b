// 12_bulk_copy: 11_persistent, with the next row fetched into shared memory by the copy engine of the SM.
//
// One thread asks for a whole row, and a barrier in shared memory counts the bytes that have arrived: no register holds
// what is on its way, and no thread computes an address for it (counters: registers per thread; instructions executed;
// global load requests). A block has two buffers: one is filled once the other's sum is known. The weight comes in the
// same way, once. It costs shared memory, a trip through it, and alignment: addresses and sizes must be multiples of 16
// bytes. Rows that are not aligned, or too long for shared memory, are read from global memory. Needs sm_90. It leaves:
// only one SM works on a row, however long it is.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/barrier>

#include "common/cuda_check.h"
#include "common/kernel_helpers.cuh"
#include "common/operators/rms_norm.h"

namespace ladder::matrix::bulk_copy {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kMostThreads = 512;
constexpr int kBarriers = 32;  // bytes of shared memory before the buffers, which begin at a multiple of 16

// One thread calls it. When all bytes have arrived, the barrier's current phase ends.
__device__ inline void fetch(float4* to, const float* from, int64_t bytes, Barrier& arrived) {
#if __CUDA_ARCH__ >= 900
  const auto* vectors = reinterpret_cast<const float4*>(from);
  cuda::device::memcpy_async_tx(to, vectors, cuda::aligned_size_t<16>(bytes), arrived);
  static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, bytes));
#endif
}

// kBulk: every row's address and size is a multiple of 16 bytes, and three rows fit into shared memory.
template <bool kBulk>
__global__ void __launch_bounds__(kMostThreads)
    rms_norm_kernel_bulk_copy(const float* __restrict__ input, const float* __restrict__ weight,
                              float* __restrict__ output, int64_t rows, int64_t cols, float inverse_cols, float eps) {
  extern __shared__ float4 shared[];  // three barriers, two rows of the input, the weight
  auto* arrived = reinterpret_cast<Barrier*>(shared);
  __shared__ alignas(16) float warp_sums[2][kMostThreads / 32];
  const int tid = threadIdx.x, threads = blockDim.x;
  const int64_t bytes = cols * static_cast<int64_t>(sizeof(float));
  const auto buffer = [&](int number) { return shared + kBarriers / 16 + number * (cols / 4); };
  const auto fetch_row = [&](int64_t row, int turn) {
    if (kBulk && tid == 0 && row < rows) fetch(buffer(turn), input + row * cols, bytes, arrived[turn]);
  };

  if (tid == 0)
    for (int i = 0; i < 3; ++i) init(&arrived[i], 1);  // one thread arrives: the one that fetches
  __syncthreads();
  fetch_row(blockIdx.x, 0);
  fetch_row(int64_t{blockIdx.x} + gridDim.x, 1);
  const float4* vec_weight = kBulk ? buffer(2) : reinterpret_cast<const float4*>(weight);
  if (kBulk && weight != nullptr) {
    if (tid == 0) fetch(buffer(2), weight, bytes, arrived[2]);
    arrived[2].wait_parity(false);
  }

  int turn = 0;
  bool parity = false;  // of the phase that ends when the row is there; each barrier has one phase in two rows
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const float* row_input = input + row * cols;
    float* row_output = output + row * cols;
    auto* vec_output = reinterpret_cast<float4*>(row_output);
    const float4* vec_input = kBulk ? buffer(turn) : reinterpret_cast<const float4*>(row_input);
    const int64_t vec_cols = kBulk || aligned_for_float4(row_input, weight, row_output) ? cols / 4 : 0;
    if (kBulk) arrived[turn].wait_parity(parity);

    float sum = 0.0f;
#pragma unroll 4
    for (int64_t i = tid; i < vec_cols; i += threads) sum += sum_of_squares(vec_input[i]);
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) sum += row_input[i] * row_input[i];
    sum = row_sum(sum, warp_sums[turn]);
    // All threads have passed the barrier in row_sum, so none still reads the row before this one: refill its buffer.
    if (row >= gridDim.x) fetch_row(row + gridDim.x, turn ^ 1);
    const float rstd = rsqrtf(sum * inverse_cols + eps);

#pragma unroll 4
    for (int64_t i = tid; i < vec_cols; i += threads) {
      const float4 w = weight == nullptr ? make_float4(1.0f, 1.0f, 1.0f, 1.0f) : vec_weight[i];
      __stcs(vec_output + i, scaled(vec_input[i], rstd, w));
    }
    for (int64_t i = 4 * vec_cols + tid; i < cols; i += threads) {
      const float normalized = row_input[i] * rstd;
      row_output[i] = weight == nullptr ? normalized : normalized * weight[i];
    }
    turn ^= 1;
    if (turn == 0) parity = !parity;
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;
  int device = 0, multiprocessors = 0, most_bytes = 0, blocks = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaDeviceGetAttribute(&most_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  const auto bits = reinterpret_cast<uintptr_t>(input) | reinterpret_cast<uintptr_t>(weight) |
                    reinterpret_cast<uintptr_t>(output) | static_cast<uintptr_t>(cols * sizeof(float));
  const int64_t wanted = kBarriers + 3 * cols * static_cast<int64_t>(sizeof(float));
  constexpr int64_t kElse = 2 * kMostThreads / 32 * sizeof(float);  // the kernel's other shared memory
  const bool bulk = bits % 16 == 0 && wanted + kElse <= most_bytes;
  const int bytes = bulk ? static_cast<int>(wanted) : kBarriers;
  const int threads = static_cast<int>(std::clamp<int64_t>(cols / 16 + 127, 128, kMostThreads) / 128 * 128);
  auto* kernel = bulk ? rms_norm_kernel_bulk_copy<true> : rms_norm_kernel_bulk_copy<false>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, bytes));
  blocks = static_cast<int>(std::min<int64_t>(rows, int64_t{blocks} * multiprocessors));
  kernel<<<blocks, threads, bytes, stream>>>(input, weight, output, rows, cols, 1.0f / static_cast<float>(cols), eps);
}

inline const Stage<RmsNorm> stage{"12_bulk_copy", "the next row by a bulk copy into shared memory", launch, {90}};

}  // namespace ladder::matrix::bulk_copy
