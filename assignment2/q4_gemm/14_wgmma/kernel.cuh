// 14_wgmma: Hopper's instruction for four warps. It takes float16, so weights become float16 in registers, and x is
// turned into float16 once, by a kernel before. Both stay whole numbers, which float16 holds exactly up to 2048.
//
// It removes the fragments of x: wgmma reads x from shared memory itself (in the profiler: shared loads). And weights,
// which lie in memory as a lane gives them to the tensor cores, do not go through shared memory at all.
// It costs another order of weights and x in memory, x of 2 bytes a number, and a second launch.
// It leaves: threads that copy x and wait for each other, one chunk of weights on its way, idle multiprocessors at
// small n.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cuda/barrier>

#include "assignment2/q4_gemm/half_tiles.cuh"
#include "assignment2/q4_gemm/wgmma.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::wgmma {

constexpr int kStages = 3;

// A block has TILE_N columns and kGroups groups of 64 rows, each with four warps.
template <int TILE_N, int kGroups>
__global__ void __launch_bounds__(kHasWgmma ? 128 * kGroups : 32)
    gemm_q4_0_f16_wgmma_kernel(Fragments w, const HalfTile<TILE_N>* __restrict__ x, float* __restrict__ y, int64_t m,
                               int64_t n) {
#if __CUDA_ARCH__ >= 900
  constexpr int kThreads = 128 * kGroups;
  __shared__ alignas(128) HalfTile<TILE_N> tiles[kStages];
  const int thread = threadIdx.x, warp = thread / 32 % 4, g = thread % 32 / 4, t = thread % 4;
  const int64_t group = int64_t{blockIdx.y} * kGroups + thread / 128, first_column = int64_t{blockIdx.x} * TILE_N;
  const int64_t first_piece = min(group, w.groups - 1) * w.chunks;  // groups past the end repeat the last one

  const auto copy = [&](int64_t chunk, HalfTile<TILE_N>& to) {
    const auto* from = reinterpret_cast<const uint4*>(x + blockIdx.x * w.chunks + chunk);
    for (int i = thread; i < static_cast<int>(sizeof to / 16) && chunk < w.chunks; i += kThreads)
      __pipeline_memcpy_async(reinterpret_cast<uint4*>(&to) + i, from + i, 16);
    __pipeline_commit();
  };
  uint4 numbers;
  uint2 scales;
  const auto load = [&](int64_t chunk) {
    const int64_t piece = first_piece + min(chunk, w.chunks - 1);
    numbers = w.numbers[piece * 128 + thread % 128];
    scales = w.scales[piece * 32 + thread % 128 / 4];
  };

  for (int s = 0; s < kStages - 1; ++s) copy(s, tiles[s]);
  load(0);
  float sums[TILE_N / 2] = {}, products[TILE_N / 2];
  for (int64_t chunk = 0; chunk < w.chunks; ++chunk) {
    __pipeline_wait_prior(kStages - 2);
    cuda::device::experimental::fence_proxy_async_shared_cta();  // the tensor cores see what this thread has copied
    __syncthreads();  // all threads' copies of this tile are there, and no thread reads the tile before
    copy(chunk + kStages - 1, tiles[(chunk + kStages - 1) % kStages]);

    const HalfTile<TILE_N>& tile = tiles[chunk % kStages];
    const uint32_t words[2][2] = {{numbers.x, numbers.y}, {numbers.z, numbers.w}}, d[2] = {scales.x, scales.y};
    load(chunk + 1);
#pragma unroll
    for (int b = 0; b < 2; ++b) {
      uint32_t a[2][4];
      half_fragments(words[b], a);
      wgmma_begin();
      half_wgmma<TILE_N>(products, a[0], tile.panels[4 * b], false);
      half_wgmma<TILE_N>(products, a[1], tile.panels[4 * b + 2], true);
      wgmma_end(products);
      add_scaled<TILE_N>(d[b], tile.scales[b], products, sums);
    }
  }
#pragma unroll
  for (int i = 0; i < TILE_N / 2; ++i) {
    const int64_t row = group * 64 + warp * 16 + i / 2 % 2 * 8 + g, column = first_column + i / 4 * 8 + 2 * t + i % 2;
    if (row < m && column < n) y[column * m + row] = sums[i];
  }
#endif
}

template <int TILE_N, int kGroups>
void launch_tile(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                 cudaStream_t stream) {
  auto* tiles = reinterpret_cast<HalfTile<TILE_N>*>(scratch);
  convert_to_half(x, tiles, n, k, stream);
  const dim3 grid(static_cast<unsigned>(blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, 64 * kGroups)));
  gemm_q4_0_f16_wgmma_kernel<TILE_N, kGroups><<<grid, 128 * kGroups, 0, stream>>>(w, tiles, y, m, n);
}

inline void launch(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const auto tile = n <= 16 ? launch_tile<16, 1> : launch_tile<64, 2>;
  tile(w, x, y, scratch, m, n, k, stream);
}

inline const char* refuses(const Shape& shape) {
  static const char* const without_wgmma = refuses_without_wgmma(gemm_q4_0_f16_wgmma_kernel<16, 1>);
  return without_wgmma ? without_wgmma : Q4GemmFragments::refuses(shape);
}

inline const Stage<Q4GemmFragments> stage{
    "14_wgmma", "wgmma: weights as float16 in registers, x as float16 in shared memory", launch, {90, refuses}};

}  // namespace ladder::q4_gemm::wgmma
