// reduction6: the sums of a warp's lanes travel through registers.
//
// It removes the tree in shared memory of reduction5: a shuffle hands a lane the register of another, with no store, no
// load and no barrier. Shared memory is left for one sum per warp (counters: requests to shared memory; barriers per
// block).
// It leaves: one load instruction brings 4 bytes per lane (counter: requests to global memory).
#include <cuda_runtime.h>

#include <cstdint>

#include "common/operators/sum.h"
#include "lectures/W2L1_reduction/rounds.h"

namespace ladder::reduction::reduction6 {

constexpr int kBlockSize = 256;
constexpr int kElements = 16;  // per thread and step

// Lane 0 gets the sum of its warp's 32 values. All 32 lanes must call it.
__device__ inline float warp_sum(float value) {
#pragma unroll
  for (int s = 16; s > 0; s /= 2) value += __shfl_down_sync(0xffffffffu, value, s);
  return value;
}

__global__ void __launch_bounds__(kBlockSize)
    reduce_kernel(const float* __restrict__ input, float* __restrict__ sums, int64_t n) {
  constexpr int kWarps = kBlockSize / 32;
  __shared__ float warp_sums[kWarps];
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  constexpr int64_t kChunk = kBlockSize * kElements;

  float sum = 0.0f;
  for (int64_t first = blockIdx.x * kChunk; first < n; first += gridDim.x * kChunk) {
    float x[kElements];
#pragma unroll
    for (int k = 0; k < kElements; ++k) {
      const int64_t i = first + k * kBlockSize + tid;
      x[k] = i < n ? input[i] : 0.0f;
    }
#pragma unroll
    for (int k = 0; k < kElements; ++k) sum += x[k];
  }

  sum = warp_sum(sum);
  if (lane == 0) warp_sums[warp] = sum;
  __syncthreads();
  if (warp > 0) return;
  sum = warp_sum(lane < kWarps ? warp_sums[lane] : 0.0f);
  if (lane == 0) sums[blockIdx.x] = sum;
}

inline void launch(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream) {
  static const int64_t most_blocks = resident_blocks(reduce_kernel, kBlockSize);
  in_rounds(input, output, scratch, n, kBlockSize * kElements, most_blocks,
            [&](unsigned blocks, const float* from, float* to, int64_t count) {
              reduce_kernel<<<blocks, kBlockSize, 0, stream>>>(from, to, count);
            });
}

inline const Stage<Sum> stage{"reduction6", "sums through registers: shuffles", launch};

}  // namespace ladder::reduction::reduction6

LADDER_MAIN(ladder::reduction::reduction6::stage)
