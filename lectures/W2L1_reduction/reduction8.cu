// reduction8: the block that ends last adds up the sums of all blocks.
//
// It removes the second launch of reduction7 (counter: launches). Every block writes its sum, and then counts itself
// with an atomic operation; the block that finds all others counted knows that all sums are there. As each block pays
// for that, blocks have 512 threads: half as many are needed (the controls' reduction8_256_threads keeps reduction7's
// size). It leaves: the last block is alone with hundreds of sums of the others, and each of those cost an atomic
// operation on one address (counter: atomic requests).
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "common/kernel_helpers.cuh"
#include "common/launch.h"
#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/thread_sum.cuh"

namespace ladder::reduction::reduction8 {

// The scratch memory holds anything before a launch, so the counter cannot lie there. It starts as 0, and every launch
// leaves it as 0. All launches share it: two of them must not run at the same time, on two streams or in two branches
// of a graph. A library asks its caller for a counter that is 0.
__device__ unsigned blocks_done;

template <int kThreads, int kVectors, bool kStreaming>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(const float* __restrict__ input, float* output, float* sums, int64_t n) {
  __shared__ bool is_last;
  float sum = block_reduce_sum<kThreads>(thread_sum<kThreads, kVectors, kStreaming>(input, n));
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = sum;
    __threadfence();  // a block that sees this one counted sees its sum
    const unsigned last = gridDim.x - 1;
    is_last = atomicInc(&blocks_done, last) == last;  // this sets it back to 0, ready for the next launch
  }
  __syncthreads();
  if (!is_last) return;

  __threadfence();  // the sums are read after the count
  sum = 0.0f;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kThreads) sum += sums[i];
  sum = block_reduce_sum<kThreads>(sum);
  if (threadIdx.x == 0) *output = sum;
}

// kWaves: how many times as many blocks as the GPU holds at once; 0: no block takes a second tile.
template <int kThreads = 512, int kVectors = 4, int kWaves = 1, bool kStreaming = false>
void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  const auto kernel = reduce_kernel<kThreads, kVectors, kStreaming>;
  static const int64_t resident = resident_blocks(kernel, kThreads);
  const int64_t tiles = blocks_for(n, int64_t{4} * kVectors * kThreads);
  const int64_t blocks = std::clamp<int64_t>(tiles, 1, kWaves > 0 ? kWaves * resident : INT64_MAX);
  kernel<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(input, output, scratch, n);
}

inline const Stage<Sum> stage{"reduction8", "one launch: the last block adds up the sums", launch<>};

}  // namespace ladder::reduction::reduction8

LADDER_MAIN(ladder::reduction::reduction8::stage)
