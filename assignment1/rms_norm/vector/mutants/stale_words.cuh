// stale_words: 12_one_word with a mark in place of the launch's number. The second launch finds the words of the first,
// marked as complete, and takes their sums.
#pragma once

#include <cuda/atomic>

#include "parts.cuh"

namespace ladder::vector::mutants::stale_words {

using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

__device__ uint64_t words[2];  // a mark << 32 | bits of the sum; one for each block

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t n, float eps) {
  __shared__ float all;
  const parts::Share share = parts::share_of_block(n);
  const float sum = parts::sum_of_squares(input, share);
  if (threadIdx.x == 0) {
    constexpr uint64_t kComplete = uint64_t{1} << 32;  // the fault: true of every launch from the first one on
    Word(words[blockIdx.x]).store(kComplete | __float_as_uint(sum), cuda::memory_order_relaxed);
    uint64_t word;
    do word = Word(words[1 - blockIdx.x]).load(cuda::memory_order_relaxed);
    while ((word & kComplete) == 0);
    all = sum + __uint_as_float(static_cast<unsigned>(word));
  }
  __syncthreads();
  parts::scale(input, weight, output, share, parts::rstd(all, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float*, int64_t n, float eps,
                   cudaStream_t stream) {
  parts::launch_together(2, stream, rms_norm_kernel, input, weight, output, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"stale_words",
                                          "sums that blocks left in an earlier launch are taken for this one's", launch,
                                          "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::vector::mutants::stale_words
