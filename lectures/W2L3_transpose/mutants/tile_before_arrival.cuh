// tile_before_arrival: bulk copies bring the rows of the tile, and the block waits at its own barrier, but not for the
// bytes. A copy engine is not a thread: __syncthreads() does not wait for it.
#pragma once

#include <cuda/barrier>

#include "parts.cuh"

namespace ladder::transpose::mutants::tile_before_arrival {

using parts::kThreadRows;
using parts::kTile;

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols, unsigned tiles_across) {
#if __CUDA_ARCH__ >= 900
  __shared__ alignas(16) float tile[kTile][kTile];
  __shared__ alignas(Barrier) unsigned char barrier_bytes[sizeof(Barrier)];
  Barrier& arrived = *reinterpret_cast<Barrier*>(barrier_bytes);
  const int64_t first_row = int64_t{blockIdx.x / tiles_across} * kTile;
  const int64_t first_col = int64_t{blockIdx.x % tiles_across} * kTile;
  const int x = threadIdx.x;
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    init(&arrived, 1);
    for (int y = 0; y < kTile; ++y)
      cuda::device::memcpy_async_tx(tile[y], input + (first_row + y) * cols + first_col,
                                    cuda::aligned_size_t<16>(sizeof tile[y]), arrived);
    static_cast<void>(cuda::device::barrier_arrive_tx(arrived, 1, sizeof tile));
  }
  __syncthreads();  // the fault: no arrived.wait_parity(false) after it
  for (int y = threadIdx.y; y < kTile; y += kThreadRows) output[(first_col + y) * rows + first_row + x] = tile[x][y];
#endif
}

__global__ void element_kernel(const float* input, float* output, int64_t rows, int64_t cols) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < rows * cols) output[i % cols * rows + i / cols] = input[i];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  if (rows * cols == 0) return;
  if (rows % kTile == 0 && cols % kTile == 0 && aligned_for<float4>(input, input))
    parts::one_block_per_tile<transpose_kernel>(input, output, rows, cols, stream);
  else
    element_kernel<<<static_cast<unsigned>(blocks_for(rows * cols, 256)), 256, 0, stream>>>(input, output, rows, cols);
}

inline const Mutant<Transpose> mutant{"tile_before_arrival", "no thread waits for the bytes that bulk copies bring",
                                      launch, "elements wrong, first at", Shows::on_cpu_device};

}  // namespace ladder::transpose::mutants::tile_before_arrival
