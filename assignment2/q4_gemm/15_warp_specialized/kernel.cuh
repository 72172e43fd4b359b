// 15_warp_specialized: one warp, the producer, asks the copy engine for pieces of weights and x, several pieces ahead.
// The other warps, the consumers, multiply. Each place for a piece has two barriers: `full` ends a phase when all bytes
// of a piece have arrived, `empty` when all consumers are done with it. Warpgroups of a block share k, and so do two
// blocks, a cluster, which add up their sums in each other's shared memory.
//
// It removes the barrier of the block before each chunk (counter: barriers per block), the threads' copies and loads
// (counter: global load requests), and idle multiprocessors. It costs shared memory for weights, and a warp. It leaves:
// the products of 32 k have to be scaled by ordinary instructions.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/barrier>

#include "assignment2/q4_gemm/half_tiles.cuh"
#include "assignment2/q4_gemm/wgmma.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"

namespace ladder::q4_gemm::warp_specialized {

using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kParts = 2;  // of k, blocks of a cluster

// A block has TILE_N columns and kGroups groups of 64 rows, each with kWays warpgroups that share the block's k.
template <int TILE_N, int kGroups, int kWays>
struct Tile {
  struct Piece {  // 64 k for each way
    HalfTile<TILE_N> x[kWays];
    uint4 numbers[kGroups][kWays][128];
    uint2 scales[kGroups][kWays][32];
  };
  static constexpr int kStages = std::min<int>(8, 200 * 1024 / sizeof(Piece));  // places for pieces
  static constexpr int kConsumers = 128 * kGroups * kWays, kThreads = kConsumers + 32, kRows = 64 * kGroups;
  using Sums = float[TILE_N][kRows + 4];  // of a way; columns begin in different banks
  static constexpr int kBytes = std::max(kStages * sizeof(Piece), kWays * sizeof(Sums));
};

template <int TILE_N, int kGroups, int kWays>
__global__ void __launch_bounds__(kHasWgmma ? Tile<TILE_N, kGroups, kWays>::kThreads : 32)
    gemm_q4_0_f16_wgmma_specialized_kernel(Fragments w, const HalfTile<TILE_N>* __restrict__ x, float* __restrict__ y,
                                           int64_t m, int64_t n) {
#if __CUDA_ARCH__ >= 900
  using Shape = Tile<TILE_N, kGroups, kWays>;
  constexpr int kStages = Shape::kStages, kConsumers = Shape::kConsumers, kRows = Shape::kRows;
  extern __shared__ __align__(128) unsigned char shared[];
  auto* ring = reinterpret_cast<typename Shape::Piece*>(shared);
  __shared__ uint64_t barriers[2][kStages];
  auto *full = reinterpret_cast<Barrier*>(barriers[0]), *empty = reinterpret_cast<Barrier*>(barriers[1]);
  const int thread = threadIdx.x, lane = thread % 32, part = static_cast<int>(blockIdx.x % kParts);
  const int group = thread / 128 / kWays, way = thread / 128 % kWays;
  const int64_t first_group = int64_t{blockIdx.y} * kGroups, column_tile = blockIdx.x / kParts;
  const int64_t begin = w.chunks * part / kParts;
  const int chunks = static_cast<int>(w.chunks * (part + 1) / kParts - begin), pieces = (chunks + kWays - 1) / kWays;
  const auto wait = [](Barrier& barrier, int piece) { barrier.wait_parity(piece / kStages % 2 != 0); };

  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) init(&full[i], 1), init(&empty[i], kConsumers);
    cuda::device::experimental::fence_proxy_async_shared_cta();  // the copy engine sees the initialized barriers
  }
  __syncthreads();

  float sums[TILE_N / 2] = {}, products[TILE_N / 2];
  if (thread == kConsumers) {
    for (int i = 0; i < pieces; ++i) {
      auto& piece = ring[i % kStages];
      const int there = min(kWays, chunks - i * kWays);  // the last piece may have fewer chunks
      const auto copy = [&](auto* to, const auto* from) {
        cuda::device::memcpy_async_tx(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from),
                                      cuda::aligned_size_t<16>(there * sizeof *to), full[i % kStages]);
      };
      if (i >= kStages) wait(empty[i % kStages], i - kStages);
      static_cast<void>(cuda::device::barrier_arrive_tx(full[i % kStages], 1, sizeof piece / kWays * there));
      copy(piece.x, x + column_tile * w.chunks + begin + i * kWays);
      for (int g = 0; g < kGroups; ++g) {  // groups past the end repeat the last one
        const int64_t from = min(first_group + g, w.groups - 1) * w.chunks + begin + i * kWays;
        copy(piece.numbers[g], reinterpret_cast<const uint4(*)[128]>(w.numbers) + from);
        copy(piece.scales[g], reinterpret_cast<const uint2(*)[32]>(w.scales) + from);
      }
    }
  } else if (thread < kConsumers) {
    for (int i = 0; i < pieces; ++i) {
      wait(full[i % kStages], i);
      if (i * kWays + way < chunks) {
        const auto& piece = ring[i % kStages];
        const uint4 numbers = piece.numbers[group][way][thread % 128];
        const uint2 scales = piece.scales[group][way][thread % 128 / 4];
        const uint32_t words[2][2] = {{numbers.x, numbers.y}, {numbers.z, numbers.w}}, d[2] = {scales.x, scales.y};
#pragma unroll
        for (int b = 0; b < 2; ++b) {
          uint32_t a[2][4];
          half_fragments(words[b], a);
          wgmma_begin();
          half_wgmma<TILE_N>(products, a[0], piece.x[way].panels[4 * b], false);
          half_wgmma<TILE_N>(products, a[1], piece.x[way].panels[4 * b + 2], true);
          wgmma_end(products);
          add_scaled<TILE_N>(d[b], piece.x[way].scales[b], products, sums);
        }
      }
      cuda::device::experimental::fence_proxy_async_shared_cta();  // what it has loaded is in its registers
      static_cast<void>(empty[i % kStages].arrive());
    }
  }

  __syncthreads();  // no thread reads the ring any more: the sums take its place
  auto* of_ways = reinterpret_cast<typename Shape::Sums*>(shared);
  const int first_row = 64 * group + thread / 32 % 4 * 16 + lane / 4;
  if (thread < kConsumers)
#pragma unroll
    for (int i = 0; i < TILE_N / 2; ++i)
      of_ways[way][i / 4 * 8 + lane % 4 * 2 + i % 2][first_row + i / 2 % 2 * 8] = sums[i];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();  // now the sums of both blocks are there
  for (int i = part * Shape::kThreads + thread; i < kRows * TILE_N; i += kParts * Shape::kThreads) {
    const int64_t row = first_group * 64 + i % kRows, column = column_tile * TILE_N + i / kRows;
    if (row >= m || column >= n) continue;
    float sum = 0.0f;
    for (int j = 0; j < kParts * kWays; ++j)
      sum += *cluster.map_shared_rank(&of_ways[j % kWays][i / kRows][i % kRows], j / kWays);
    y[column * m + row] = sum;
  }
  cluster.sync();  // a block's shared memory lives until both have read it
#endif
}

template <int TILE_N, int kGroups, int kWays>
void launch_tile(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                 cudaStream_t stream) {
  using Shape = Tile<TILE_N, kGroups, kWays>;
  auto* tiles = reinterpret_cast<HalfTile<TILE_N>*>(scratch);
  convert_to_half(x, tiles, n, k, stream);
  const auto kernel = gemm_q4_0_f16_wgmma_specialized_kernel<TILE_N, kGroups, kWays>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes));
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {kParts, 1, 1};
  const dim3 grid(static_cast<unsigned>(kParts * blocks_for(n, TILE_N)),
                  static_cast<unsigned>(blocks_for(m, Shape::kRows)));
  const cudaLaunchConfig_t config = {grid, dim3(Shape::kThreads), Shape::kBytes, stream, &cluster, 1};
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, w, static_cast<const HalfTile<TILE_N>*>(tiles), y, m, n));
}

inline void launch(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const auto tile = n <= 16 ? launch_tile<16, 1, 4> : n <= 64 ? launch_tile<64, 1, 4> : launch_tile<64, 2, 1>;
  tile(w, x, y, scratch, m, n, k, stream);
}

inline const char* refuses(const ladder::Shape& shape) {
  static const char* const without_wgmma = refuses_without_wgmma(gemm_q4_0_f16_wgmma_specialized_kernel<16, 1, 4>);
  return without_wgmma ? without_wgmma : Q4GemmFragments::refuses(shape);
}

inline const Stage<Q4GemmFragments> stage{
    "15_warp_specialized", "a warp copies, others multiply; warpgroups and a cluster share k", launch, {90, refuses}};

}  // namespace ladder::q4_gemm::warp_specialized
