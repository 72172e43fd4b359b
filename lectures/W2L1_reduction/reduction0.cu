// reduction0: a tree in shared memory, in which the threads that still add are farther and farther apart.
//
// It leaves: in the first step every second lane of a warp adds, in the next every fourth. A warp executes a step if at
// least one of its lanes takes part, so nearly all warps stay busy while fewer and fewer lanes do work (counter: lanes
// per request of a shared load).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/launch.h"
#include "common/operators/sum.h"

namespace ladder::reduction::reduction0 {

constexpr int kBlockSize = 256;

// One partial sum per block, of one element per thread.
__global__ void reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  const int64_t i = int64_t{blockIdx.x} * kBlockSize + tid;
  sdata[tid] = i < n ? input[i] : 0.0f;
  __syncthreads();

  for (int s = 1; s < kBlockSize; s *= 2) {
    if (tid % (2 * s) == 0) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = sdata[0];
}

// Adds up the sums until one is left. Blocks run in any order, so no launch writes what it reads: each launch has its
// own part of the scratch memory.
inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  while (true) {
    const int64_t blocks = std::max<int64_t>(blocks_for(n, kBlockSize), 1);  // the sum of nothing is 0
    float* sums = blocks == 1 ? output : scratch;
    reduce_kernel<<<static_cast<unsigned>(blocks), kBlockSize, 0, stream>>>(input, sums, n);
    if (blocks == 1) return;
    input = sums;
    scratch += blocks;
    n = blocks;
  }
}

inline const Stage<Sum> stage{"reduction0", "tree in shared memory, interleaved addresses, divergent", launch};

}  // namespace ladder::reduction::reduction0

LADDER_MAIN(ladder::reduction::reduction0::stage)
