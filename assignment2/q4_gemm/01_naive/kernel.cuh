// 01_naive: a thread computes one output, with the loops of the formula.
//
// It leaves: lanes that read rows far apart, so that each load of a byte touches 32 sectors (counter: sectors per
// request); one multiplication at a time; and every weight read once per column.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::naive {

constexpr int kBlockSize = 128;

__device__ inline float scale_of(uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

__global__ void gemm_q4_0_q8_1_naive_kernel(const block_q4_0* __restrict__ w, const block_q8_1* __restrict__ x,
                                            float* __restrict__ y, int64_t m, int64_t k) {
  const int64_t row = int64_t{blockIdx.y} * kBlockSize + threadIdx.x;
  const int64_t column = blockIdx.x, blocks = k / kBlock;
  if (row >= m) return;

  float sum = 0.0f;
  for (int64_t b = 0; b < blocks; ++b) {
    const block_q4_0& weights = w[row * blocks + b];
    const block_q8_1& activations = x[column * blocks + b];
    int dot = 0;
    for (int i = 0; i < kBlock / 2; ++i) {
      const int two = weights.qs[i];
      dot += ((two & 15) - 8) * activations.qs[i];
      dot += ((two >> 4) - 8) * activations.qs[i + kBlock / 2];
    }
    sum += scale_of(weights.d) * scale_of(activations.d) * static_cast<float>(dot);
  }
  y[column * m + row] = sum;
}

inline void launch(const block_q4_0* w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kBlockSize)));
  gemm_q4_0_q8_1_naive_kernel<<<grid, kBlockSize, 0, stream>>>(w, x, y, m, k);
}

inline const Stage<Q4GemmBlocks> stage{"01_naive", "one thread per output", launch, {0, Q4GemmBlocks::refuses}};

}  // namespace ladder::q4_gemm::naive
