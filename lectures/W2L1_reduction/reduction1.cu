// reduction1: the same tree, with the threads that add side by side.
//
// It removes the divergence of reduction0: thread t takes the t-th addition of a step, so the threads that add are the
// first ones of the block, and a warp works with all its lanes or not at all (counter: lanes per request of a shared
// load).
// It leaves: neighbouring lanes now access words that are 2, 4, 8, ... apart, and so many of these lie in one bank
// (counter: wavefronts per request of a shared load).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction1 {

constexpr int kBlockSize = 256;

__global__ void reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  const int64_t i = int64_t{blockIdx.x} * kBlockSize + tid;
  sdata[tid] = i < n ? input[i] : 0.0f;
  __syncthreads();

  for (int s = 1; s < kBlockSize; s *= 2) {
    const int left = 2 * s * tid;
    if (left < kBlockSize) sdata[left] += sdata[left + s];
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = sdata[0];
}

inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  in_rounds(input, output, scratch, n, kBlockSize, INT64_MAX,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction1", "tree in shared memory, interleaved addresses, bank conflicts", launch};

}  // namespace ladder::reduction::reduction1

LADDER_MAIN(ladder::reduction::reduction1::stage)
