// reduction7: 16 bytes per lane and load.
//
// It removes three of four load instructions of reduction6: a float4 is four neighbouring floats in one instruction
// (counter: requests to global memory). An address that is no multiple of 16 is an error, not a slow access, so up to
// three floats before the first vector and up to three after the last one are read one by one.
// It leaves: a second launch, for a thousand numbers (counter: launches).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction7 {

constexpr int kBlockSize = 256;
constexpr int kVectors = 4;  // float4 per thread and step: 16 elements

__device__ inline float sum_of(float4 x) { return (x.x + x.y) + (x.z + x.w); }

// The sum of this thread's share of the input.
__device__ inline float thread_sum(const float* input, int64_t n) {
  const int tid = threadIdx.x;
  constexpr int64_t kTile = kBlockSize * kVectors;  // in vectors

  // Floats past a multiple of 16 bytes; before the first vector; and the number of vectors.
  const auto past = static_cast<int>(reinterpret_cast<uintptr_t>(input) / sizeof(float) % 4);
  const int64_t head = min(static_cast<int64_t>((4 - past) % 4), n);
  const int64_t count = (n - head) / 4;
  const auto* vectors = reinterpret_cast<const float4*>(input + head);

  float sum = 0.0f;
  int64_t first = blockIdx.x * kTile;
  for (; first + kTile <= count; first += gridDim.x * kTile) {
    float4 x[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) x[k] = vectors[first + k * kBlockSize + tid];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sum += sum_of(x[k]);
  }
#pragma unroll 1  // it runs in one block
  for (int64_t i = first + tid; i < count; i += kBlockSize) sum += sum_of(vectors[i]);

  if (blockIdx.x == gridDim.x - 1) {
    const int64_t tail = head + 4 * count;
    if (tid < head) sum += input[tid];
    if (tid < n - tail) sum += input[tail + tid];
  }
  return sum;
}

__global__ void __launch_bounds__(kBlockSize)
    reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  const float sum = block_reduce_sum<kBlockSize>(thread_sum(input, n));
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  static const int64_t most_blocks = resident_blocks(reduce_kernel, kBlockSize);
  in_rounds(input, output, scratch, n, 4 * kVectors * kBlockSize, most_blocks,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction7", "128-bit loads, with a head and a tail", launch};

}  // namespace ladder::reduction::reduction7

LADDER_MAIN(ladder::reduction::reduction7::stage)
