// The right parts of kernels with one thread per output, so that each mutant contains its fault and little else.
#pragma once

#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "assignment2/q4_gemm/shared.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::mutants::parts {

constexpr int kBlockSize = 128, kTileBlocks = 8;

// Number i of a block as the 4 bits that are stored, 0 to 15.
__device__ inline int bits_of(const block_q4_0& block, int i) {
  const int two = block.qs[i % (kBlock / 2)];
  return i < kBlock / 2 ? two & 15 : two >> 4;
}

__device__ inline int dot(const block_q4_0& w, const block_q8_1& x) {
  int sum = 0;
  for (int i = 0; i < kBlock; ++i) sum += (bits_of(w, i) - 8) * x.qs[i];
  return sum;
}

__device__ inline float scale(const block_q4_0& w, const block_q8_1& x) { return scale_of(w.d) * scale_of(x.d); }

__device__ inline int64_t row_of_thread() { return int64_t{blockIdx.y} * kBlockSize + threadIdx.x; }

// The threads of a block ask for a tile of a column, from block `first` on, and close the batch.
__device__ inline void copy_tile(const block_q8_1* column, int64_t blocks, int64_t first, block_q8_1* tile) {
  for (int64_t i = threadIdx.x; i < 9 * min(blocks - first, int64_t{kTileBlocks}); i += kBlockSize)
    __pipeline_memcpy_async(reinterpret_cast<uint32_t*>(tile) + i,
                            reinterpret_cast<const uint32_t*>(column + first) + i, 4);
  __pipeline_commit();
}

// What a tile adds to a result: blocks `first` on of a row of `blocks`.
__device__ inline float tile_sum(const block_q4_0* row, int64_t blocks, int64_t first, const block_q8_1* tile) {
  float sum = 0.0f;
  for (int64_t b = first; b < min(blocks, first + kTileBlocks); ++b)
    sum += scale(row[b], tile[b - first]) * static_cast<float>(dot(row[b], tile[b - first]));
  return sum;
}

// Term::of(w, x, b) is what block b of a row and of a column adds to the result.
template <class Term>
__global__ void sum_of_terms_kernel(const block_q4_0* w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
  const int64_t row = row_of_thread(), column = blockIdx.x, blocks = k / kBlock;
  if (row >= m) return;
  float sum = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) sum += Term::of(w + row * blocks, x + column * blocks, b);
  y[column * m + row] = sum;
}

// A grid with a thread per output.
inline dim3 grid_of(int64_t m, int64_t n) {
  return dim3(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kBlockSize)));
}

template <auto kernel>
void launch_per_output(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                       cudaStream_t stream) {
  kernel<<<grid_of(m, n), kBlockSize, 0, stream>>>(w, x, y, m, k);
}

template <class Term>
constexpr auto launch = launch_per_output<sum_of_terms_kernel<Term>>;

}  // namespace ladder::q4_gemm::mutants::parts
