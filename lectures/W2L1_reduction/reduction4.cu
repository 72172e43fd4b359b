// reduction4: one warp adds up the last 64 numbers of a block.
//
// It removes six of the nine barriers of reduction3: the threads of one warp need a barrier of their warp alone
// (counter: barriers per block). Lanes of a warp are not in step since Volta, so that barrier is needed: the classic
// form without it is the mutant volatile_last_warp.
// It leaves: a block is there for 512 numbers only; it loads, adds and ends, and its tree costs more than its loads
// (counter: requests to shared memory per request to global memory).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction4 {

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

  for (int s = kBlockSize / 2; s > 32; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
    __syncthreads();
  }
  if (tid >= 32) return;

  // Each lane keeps its sum in a register. All lanes have written before one reads, and read before one writes again.
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
  in_rounds(input, output, scratch, n, kElementsPerBlock, INT64_MAX,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction4", "the last warp alone, with barriers of a warp", launch};

}  // namespace ladder::reduction::reduction4

LADDER_MAIN(ladder::reduction::reduction4::stage)
