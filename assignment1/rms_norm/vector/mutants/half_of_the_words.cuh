// half_of_the_words: 14_copied_words, in which the number of copies, one for every two blocks, is taken for the number
// of words in a copy. The sums of the other half of the blocks arrive, and are never read.
#pragma once

#include <cuda/atomic>

#include "parts.cuh"

namespace ladder::vector::mutants::half_of_the_words {

using Word = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;
constexpr auto relaxed = cuda::memory_order_relaxed;
constexpr int kBlocks = 4, kCopies = kBlocks / 2;

__device__ uint64_t words[kCopies][kBlocks];  // number of the launch << 32 | bits of the sum

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t n, float eps) {
  __shared__ float sums[kBlocks];
  const unsigned tid = threadIdx.x;
  const auto number = static_cast<unsigned>(Word(words[0][blockIdx.x]).load(relaxed) >> 32) + 1;
  const parts::Share share = parts::share_of_block(n);
  const float sum = parts::sum_of_squares(input, share);
  if (tid < kCopies) Word(words[tid][blockIdx.x]).store(uint64_t{number} << 32 | __float_as_uint(sum), relaxed);
  if (tid < kCopies) {  // the fault: a copy has kBlocks words
    uint64_t word;
    do word = Word(words[blockIdx.x / 2][tid]).load(relaxed);
    while (word >> 32 != number);
    sums[tid] = __uint_as_float(static_cast<unsigned>(word));
  } else if (tid < kBlocks) {
    sums[tid] = 0.0f;
  }
  __syncthreads();
  float all = 0.0f;
  for (const float part : sums) all += part;
  parts::scale(input, weight, output, share, parts::rstd(all, n, eps));
}

inline void launch(const float* input, const float* weight, float* output, float*, int64_t n, float eps,
                   cudaStream_t stream) {
  parts::launch_together(kBlocks, stream, rms_norm_kernel, input, weight, output, n, eps);
}

inline const Mutant<RmsNormVector> mutant{"half_of_the_words",
                                          "the number of copies is taken for the number of words in a copy", launch,
                                          "elements wrong, first at"};

}  // namespace ladder::vector::mutants::half_of_the_words
