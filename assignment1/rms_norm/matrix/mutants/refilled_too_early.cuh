// refilled_too_early: 12_bulk_copy with one buffer instead of two. The next row is fetched when the sum of this row is
// known, while other threads still have to read this row.
#pragma once

#include <cuda/barrier>

#include "parts.cuh"

namespace ladder::matrix::mutants::refilled_too_early {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int64_t kMostCols = 2048;

__device__ inline void fetch(float* buffer, const float* row_input, int64_t cols, Barrier& arrived) {
#if __CUDA_ARCH__ >= 900
  const size_t bytes = cols * sizeof(float);
  cuda::device::memcpy_async_tx(buffer, row_input, cuda::aligned_size_t<16>(bytes), arrived);
  static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, bytes));
#endif
}

// One block for all rows. bulk: the rows' addresses and sizes are multiples of 16 bytes, and a row fits into the
// buffer.
__global__ void rms_norm_kernel(const float* input, const float* weight, float* output, int64_t rows, int64_t cols,
                                float eps, bool bulk) {
  extern __shared__ float4 shared[];  // a barrier, and a row
  __shared__ alignas(16) float warp_sums[2][parts::kBlockSize / 32];
  Barrier& arrived = *reinterpret_cast<Barrier*>(shared);
  float* buffer = reinterpret_cast<float*>(shared + 1);
  if (threadIdx.x == 0) init(&arrived, 1);
  __syncthreads();
  if (bulk && threadIdx.x == 0) fetch(buffer, input, cols, arrived);
  for (int64_t row = 0; row < rows; ++row) {
    if (bulk) arrived.wait_parity(row % 2 != 0);
    const float* row_input = bulk ? buffer : input + row * cols;
    const float sum = row_sum(parts::sum_of_squares(row_input, cols), warp_sums[row % 2]);
    const float rstd = rsqrtf(sum / static_cast<float>(cols) + eps);
    if (bulk && threadIdx.x == 0 && row + 1 < rows)
      fetch(buffer, input + (row + 1) * cols, cols, arrived);  // the fault
    parts::scale_row(row_input, weight, output + row * cols, cols, rstd);
  }
}

inline void launch(const float* input, const float* weight, float* output, int64_t rows, int64_t cols, float eps,
                   cudaStream_t stream) {
  if (rows == 0) return;
  const bool bulk = reinterpret_cast<uintptr_t>(input) % 16 == 0 && cols % 4 == 0 && cols <= kMostCols;
  const size_t bytes = sizeof(float4) + (bulk ? cols * sizeof(float) : 0);
  rms_norm_kernel<<<1, parts::kBlockSize, bytes, stream>>>(input, weight, output, rows, cols, eps, bulk);
}

inline const Mutant<RmsNorm> mutant{"refilled_too_early",
                                    "a buffer is filled with the next row while it is still being read", launch,
                                    "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::matrix::mutants::refilled_too_early
