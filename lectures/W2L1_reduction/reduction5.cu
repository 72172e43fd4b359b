// reduction5: many elements per thread, and a tree without a loop.
//
// It removes most of the trees of reduction4: as many blocks as the GPU holds at once, each of which walks over the
// input and adds up one tree at the end (counter: requests to shared memory). A thread asks for kElements numbers
// before it adds the first, so that many loads are in flight. The block's size is a constant, so the compiler unrolls
// the tree. It leaves: the sums of a block travel through shared memory in three steps with barriers (counter: barriers
// per block).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction5 {

constexpr int kBlockSize = 256;
constexpr int kElements = 16;  // per thread and step

template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  __shared__ float sdata[kThreads];
  const int tid = threadIdx.x;
  constexpr int64_t kChunk = kThreads * kElements;

  // 1. The blocks take one chunk each, then the next ones, until the input ends.
  float sum = 0.0f;
  for (int64_t first = blockIdx.x * kChunk; first < n; first += gridDim.x * kChunk) {
    float x[kElements];
#pragma unroll
    for (int k = 0; k < kElements; ++k) {
      const int64_t i = first + k * kThreads + tid;
      x[k] = i < n ? input[i] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < kElements; ++k) sum += x[k];
  }
  sdata[tid] = sum;
  __syncthreads();

  // 2. The tree.
#pragma unroll
  for (int s = kThreads / 2; s > 32; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid >= 32) return;
  sum = sdata[tid] + sdata[tid + 32];
#pragma unroll
  for (int s = 16; s > 0; s /= 2) {
    sdata[tid] = sum;
    __syncwarp();
    sum += sdata[tid + s];
    __syncwarp();
  }
  if (tid == 0) sums[blockIdx.x] = sum;
}

inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  static const int64_t most_blocks = resident_blocks(reduce_kernel<kBlockSize>, kBlockSize);
  in_rounds(input, output, scratch, n, kBlockSize * kElements, most_blocks,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<kBlockSize><<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction5", "many elements per thread, everything unrolled", launch};

}  // namespace ladder::reduction::reduction5

LADDER_MAIN(ladder::reduction::reduction5::stage)
