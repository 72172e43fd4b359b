// stale_partial_sums: 15_many_blocks with a mark in place of the launch's number. The second launch finds the sums of
// the first, marked as complete, and takes them.
#pragma once

#include <cuda/atomic>

#include "parts.cuh"

namespace ladder::matrix::mutants::stale_partial_sums {

using Atomic = cuda::atomic_ref<uint64_t, cuda::thread_scope_device>;

__device__ uint64_t words[2];  // a mark << 32 | bits of the sum; one for each of the two blocks that share a row

__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t cols, float eps) {
  __shared__ float both;
  const int part = blockIdx.x;
  const int64_t begin = part == 0 ? 0 : cols / 2, count = part == 0 ? cols / 2 : cols - cols / 2;
  const float sum = block_reduce_sum<parts::kBlockSize>(parts::sum_of_squares(input + begin, count));
  if (threadIdx.x == 0) {
    constexpr uint64_t kComplete = uint64_t{1} << 32;  // the fault: true of every launch from the first one on
    Atomic(words[part]).store(kComplete | __float_as_uint(sum), cuda::memory_order_relaxed);
    uint64_t word;
    do word = Atomic(words[1 - part]).load(cuda::memory_order_relaxed);
    while ((word & kComplete) == 0);
    both = sum + __uint_as_float(static_cast<unsigned>(word));
  }
  __syncthreads();
  const float rstd = rsqrtf(both / static_cast<float>(cols) + eps);
  parts::scale_row(input + begin, weight == nullptr ? nullptr : weight + begin, output + begin, count, rstd);
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  for (int64_t row = 0; row < rows; ++row)
    parts::launch_with(together, 2, stream, rms_norm_kernel, input + row * cols, weight, output + row * cols, cols,
                       eps);
}

inline const Mutant<RmsNorm> mutant{"stale_partial_sums",
                                    "sums that blocks left in an earlier launch are taken for this one's", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::stale_partial_sums
