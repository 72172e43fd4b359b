// sums_over_ring: a producer and consumers as in 15_warp_specialized. The sums take the place of the pieces in shared
// memory as soon as a thread has one, while others still read pieces.
#pragma once

#include <cuda/barrier>

#include "parts.cuh"

namespace ladder::q4_gemm::mutants::sums_over_ring {

using Barrier = cuda::barrier<cuda::thread_scope_block>;

constexpr int kRows = 64, kConsumers = 2 * kRows, kStages = 4;  // a thread has a row, and one of a piece's two blocks

__global__ void gemm_kernel(Fragments w, const block_q8_1* x, float* y, int64_t m, int64_t k) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(128) uint4 ring[kStages][128];
  __shared__ uint64_t barriers[2][kStages];
  auto *full = reinterpret_cast<Barrier*>(barriers[0]), *empty = reinterpret_cast<Barrier*>(barriers[1]);
  const int thread = threadIdx.x, row = thread % kRows, b = thread / kRows;
  const int g = row / 16 * 8 + row % 8, place = 2 * b + row % 16 / 8;
  const int64_t column = blockIdx.x, blocks = k / kBlock, first_piece = blockIdx.y * w.chunks;
  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) init(&full[i], 1), init(&empty[i], kConsumers);
    cuda::device::experimental::fence_proxy_async_shared_cta();
  }
  __syncthreads();

  float sum = 0.0f;
  for (int i = 0; i < w.chunks; ++i) {
    const int stage = i % kStages, turn = i / kStages;
    if (thread == kConsumers) {
      if (turn > 0) empty[stage].wait_parity((turn - 1) % 2 != 0);
      static_cast<void>(cuda::device::barrier_arrive_tx(full[stage], 1, sizeof ring[stage]));
      cuda::device::memcpy_async_tx(ring[stage], w.numbers + (first_piece + i) * 128,
                                    cuda::aligned_size_t<16>(sizeof ring[stage]), full[stage]);
    } else if (thread < kConsumers) {
      full[stage].wait_parity(turn % 2 != 0);
      if (2 * i + b < blocks) {
        const block_q8_1& activations = x[column * blocks + 2 * i + b];
        int dot = 0;
        for (int j = 0; j < kBlock; ++j) {
          const uint32_t eight = reinterpret_cast<const uint32_t*>(&ring[stage][g * 4 + j / 8])[place];
          dot += (static_cast<int>(eight >> (j % 4 * 8 + j % 8 / 4 * 4) & 15) - 8) * activations.qs[j];
        }
        const auto* scales = reinterpret_cast<const uint16_t*>(w.scales + (first_piece + i) * 32 + g);
        sum += scale_of(scales[place]) * scale_of(activations.d) * static_cast<float>(dot);
      }
      cuda::device::experimental::fence_proxy_async_shared_cta();
      static_cast<void>(empty[stage].arrive());
    }
  }
  // the fault: nothing waits here until no thread reads the ring any more
  auto* sums = reinterpret_cast<float*>(ring);
  if (thread < kConsumers) sums[thread] = sum;
  __syncthreads();
  const int64_t row_of_y = int64_t{blockIdx.y} * kRows + row;
  if (thread < kRows && row_of_y < m) y[column * m + row_of_y] = sums[row] + sums[row + kRows];
#endif
}

inline void launch(Fragments w, const block_q8_1* x, float* y, float*, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(n), static_cast<unsigned>(blocks_for(m, kRows)));
  gemm_kernel<<<grid, kConsumers + 32, 0, stream>>>(w, x, y, m, k);
}

inline const Mutant<Q4GemmFragments> mutant{"sums_over_ring", "sums are written over pieces that others still read",
                                            launch, "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::q4_gemm::mutants::sums_over_ring
