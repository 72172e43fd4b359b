// reduction2: the same tree, in which the lower half adds the upper half.
//
// It removes the bank conflicts of reduction1: in each step the lanes of a warp access words side by side, which lie in
// 32 different banks (counter: wavefronts per request of a shared load).
// It leaves: half of the threads bring one number and never add anything (counters: requests to shared memory, and
// barriers, per element).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction2 {

constexpr int kBlockSize = 256;

__global__ void reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  __shared__ float sdata[kBlockSize];
  const int tid = threadIdx.x;
  const int64_t i = int64_t{blockIdx.x} * kBlockSize + tid;
  sdata[tid] = i < n ? input[i] : 0.0f;
  __syncthreads();

  for (int s = kBlockSize / 2; s > 0; s /= 2) {
    if (tid < s) sdata[tid] += sdata[tid + s];
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

inline const Stage<Sum> stage{"reduction2", "tree in shared memory, sequential addresses", launch};

}  // namespace ladder::reduction::reduction2

LADDER_MAIN(ladder::reduction::reduction2::stage)
