// reduction3: each thread adds two numbers while it loads them.
//
// It removes half of the blocks of reduction2, with their barriers and trees: the first step of a tree needs no shared
// memory if the thread that adds loads both numbers itself (counters: requests to shared memory, and barriers, per
// element).
// It leaves: six of the nine barriers are for the last 64 numbers of a block, which one warp could add up alone
// (counter: barriers per block).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction3 {

constexpr int kBlockSize = 256;
constexpr int kElementsPerBlock = 2 * kBlockSize;

__global__ void reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  const int64_t i = int64_t{blockIdx.x} * kElementsPerBlock + tid;
  float sum = i < n ? input[i] : 0.0f;
  if (i + kBlockSize < n) sum += input[i + kBlockSize];
  sdata[tid] = sum;
  __syncthreads();

  for (int s = kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid == 0) sums[blockIdx.x] = sdata[0];
}

inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  in_rounds(input, output, scratch, n, kElementsPerBlock, INT64_MAX,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction3", "two elements per thread, added while they are loaded", launch};

}  // namespace ladder::reduction::reduction3

LADDER_MAIN(ladder::reduction::reduction3::stage)
