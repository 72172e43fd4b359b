// 08_prefetch: 07_vectorized with rows fetched ahead. While a block works on a row, cp.async copies its next rows into
// shared memory.
//
// It removes the wait for memory between two rows: loads of rows to come are in flight while the block adds up, waits
// at its barrier and writes (counter: warp cycles per issued instruction, long scoreboard). A thread reads nothing but
// what it has fetched itself, so no barrier is added. It costs shared memory, and the instructions of the copies. It
// leaves: a second kernel that adds up a row of partial sums per block.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"
#include "common/cuda_check.h"

namespace ladder::backward::prefetch {

// A block's packs of one row: dy's, then x's.
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

// kAhead rows are in flight or in shared memory, kShift times 16 bytes past its begin.
template <class T, int kAhead, int kShift>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t, bool aligned) {
  extern __shared__ uint4 fetched[];
  __shared__ float2 warp_sums[2][32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = t.cols - first;
  const bool vector = aligned && columns > 0;
  auto* own = reinterpret_cast<Pack<T>*>(fetched + kShift) + threadIdx.x;
  const unsigned slot = 2 * blockDim.x;  // packs of a row, dy's and x's
  for (int i = 0; i < kAhead; ++i)
    prefetch::fetch_ahead(own + i * slot, t, blockIdx.x + int64_t{i} * gridDim.x, first, vector);
  const Pack<float> factor = weight_factors(t, first, vector, columns);
  Pack<float> partial = {};
  int turn = 0, next = 0;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1, next = (next + 1) % kAhead) {
    const int64_t begin = row * t.cols + first;
    __pipeline_wait_prior(kAhead - 1);
    const Pack<T> dy = vector ? own[next * slot] : load_pack(t.dy + begin, false, columns);
    const Pack<T> x = vector ? own[next * slot + blockDim.x] : load_pack(t.x + begin, false, columns);
    prefetch::fetch_ahead(own + next * slot, t, row + int64_t{kAhead} * gridDim.x, first, vector);
    const Pack<T> dsum = t.dsum == nullptr ? Pack<T>{} : load_pack(t.dsum + begin, vector, columns);
    const RowFactors row_is = row_factors(t, row, block_sums(sums_of(dy, x, factor), warp_sums[turn]));
    store_pack(t.dx + begin, gradients(dy, x, dsum, factor, row_is, partial), vector, columns);
  }
  if (t.dweight != nullptr) store_pack(t.partial + blockIdx.x * t.cols + first, partial, vector, columns);
}

template <class T, int kAhead, int kShift>
void launch_with(const Tensors<T>& t, size_t bytes, cudaStream_t stream) {
  auto* kernel = gradients_kernel<T, kAhead, kShift>;
  const unsigned threads = threads_for(t.cols);
  int per_multiprocessor = 0;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  CUDA_CHECK(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, kernel, static_cast<int>(threads), bytes));
  const auto blocks =
      static_cast<unsigned>(std::min({t.rows, int64_t{per_multiprocessor} * multiprocessors(), kMostPartials}));
  if (blocks > 0) kernel<<<blocks, threads, bytes, stream>>>(t, takes_vectors(t));
  if (t.dweight == nullptr) return;
  partial_sums_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kTile)), dim3(kTile, kTile), 0, stream>>>(t, blocks);
}

template <int kShift = 0>
void launch(const BackwardCall& call, cudaStream_t stream) {
  int device = 0, most = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  dispatch(call.dtype, [&](auto* type) {
    using T = std::decay_t<decltype(*type)>;
    const auto t = tensors_of(call, type);
    const size_t row = 2 * sizeof(Pack<T>) * threads_for(t.cols), room = static_cast<size_t>(most) - 1024;
    if (4 * row <= room)
      launch_with<T, 4, kShift>(t, 4 * row + 16 * kShift, stream);
    else
      launch_with<T, 1, kShift>(t, row + 16 * kShift, stream);
  });
}

inline const Stage<RmsNormBackward> stage{"08_prefetch",
                                          "the next rows come to shared memory by cp.async",
                                          launch<>,
                                          {0, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::prefetch
