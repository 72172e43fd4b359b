// 15_warp_specialized: one warp, the producer, asks the copy engine for pieces of weights and x, several pieces ahead.
// The other warps, the consumers, multiply. Each place for a piece has two barriers: `full` ends a phase when all bytes
// of a piece have arrived, `empty` when all consumers are done with it. Two thread blocks with the same outputs and
// half of k each are a cluster, and add up their sums in each other's shared memory.
//
// It removes the barrier of the whole block before each chunk (counter: barriers per block), the threads' copies and
// loads (counter: global load requests), and idle multiprocessors at small n.
// It costs shared memory for weights, and a warp.
// It leaves: the products of 32 k have to be scaled by ordinary instructions, for which the tensor cores wait.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cuda/barrier>

#include "common/half_wgmma.cuh"
#include "common/launch.h"
#include "common/operators/q4_gemm.h"
#include "common/q4_half.cuh"

namespace ladder::q4_gemm::warp_specialized {

using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kStages = 8, kParts = 2;  // places for pieces; parts of k, blocks of a cluster

// A block has TILE_N columns and kGroups groups of 64 rows, each with four warps.
template <int TILE_N, int kGroups>
struct Tile {
  struct Piece {  // of 64 k
    HalfTile<TILE_N> x;
    uint4 numbers[kGroups][128];
    uint2 scales[kGroups][32];
  };
  static constexpr int kConsumers = 128 * kGroups, kThreads = kConsumers + 32;
  static constexpr int kRows = 64 * kGroups, kStride = kRows + 4;  // of sums, from column to column: in other banks
  static constexpr int kBytes = std::max<int>(kStages * sizeof(Piece), TILE_N* kStride * sizeof(float));
};

template <int TILE_N, int kGroups>
__global__ void __launch_bounds__(kHasWgmma ? Tile<TILE_N, kGroups>::kThreads : 32)
    gemm_q4_0_f16_wgmma_specialized_kernel(Fragments w, const HalfTile<TILE_N>* __restrict__ x, float* __restrict__ y,
                                           int64_t m, int64_t n) {
#if __CUDA_ARCH__ >= 900
  using Shape = Tile<TILE_N, kGroups>;
  using Piece = typename Shape::Piece;
  extern __shared__ __align__(128) unsigned char shared[];
  auto* ring = reinterpret_cast<Piece*>(shared);
  __shared__ uint64_t barriers[2][kStages];
  auto *full = reinterpret_cast<Barrier*>(barriers[0]), *empty = reinterpret_cast<Barrier*>(barriers[1]);
  const int thread = threadIdx.x, lane = thread % 32, part = static_cast<int>(blockIdx.x % kParts);
  const int64_t first_group = int64_t{blockIdx.y} * kGroups, column_tile = blockIdx.x / kParts;
  const int64_t begin = w.chunks * part / kParts;
  const int count = static_cast<int>(w.chunks * (part + 1) / kParts - begin);
  const auto wait = [](Barrier& barrier, int piece) { barrier.wait_parity(piece / kStages % 2 != 0); };

  if (thread == 0) {
    for (int i = 0; i < kStages; ++i) init(&full[i], 1), init(&empty[i], 4 * kGroups);
    cuda::device::experimental::fence_proxy_async_shared_cta();  // the copy engine sees the initialized barriers
  }
  __syncthreads();

  float sums[TILE_N / 2] = {};
  if (thread == Shape::kConsumers) {
    const auto copy = [](auto* to, const auto* from, Barrier& barrier) {
      cuda::device::memcpy_async_tx(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4*>(from),
                                    cuda::aligned_size_t<16>(sizeof *to), barrier);
    };
    for (int i = 0; i < count; ++i) {
      Piece& piece = ring[i % kStages];
      Barrier& barrier = full[i % kStages];
      if (i >= kStages) wait(empty[i % kStages], i - kStages);
      static_cast<void>(cuda::device::barrier_arrive_tx(barrier, 1, sizeof piece));
      copy(&piece.x, x + column_tile * w.chunks + begin + i, barrier);
      for (int group = 0; group < kGroups; ++group) {  // groups past the end repeat the last one
        const int64_t from = min(first_group + group, w.groups - 1) * w.chunks + begin + i;
        copy(&piece.numbers[group], w.numbers + from * 128, barrier);
        copy(&piece.scales[group], w.scales + from * 32, barrier);
      }
    }
  } else if (thread < Shape::kConsumers) {
    float products[TILE_N / 2];
    for (int i = 0; i < count; ++i) {
      const Piece& piece = ring[i % kStages];
      wait(full[i % kStages], i);
      const uint4 numbers = piece.numbers[thread / 128][thread % 128];
      const uint2 scales = piece.scales[thread / 128][thread % 128 / 4];
      const uint32_t words[2][2] = {{numbers.x, numbers.y}, {numbers.z, numbers.w}}, d[2] = {scales.x, scales.y};
#pragma unroll
      for (int b = 0; b < 2; ++b) {
        uint32_t a[2][4];
        half_fragments(words[b], a);
        wgmma_begin();
        half_wgmma<TILE_N>(products, a[0], piece.x.panels[4 * b], false);
        half_wgmma<TILE_N>(products, a[1], piece.x.panels[4 * b + 2], true);
        wgmma_end(products);
        add_scaled<TILE_N>(d[b], piece.x.scales[b], products, sums);
      }
      __syncwarp();
      if (lane == 0) static_cast<void>(empty[i % kStages].arrive());
    }
  }

  __syncthreads();  // nobody reads the ring any more: the sums take its place
  auto* to = reinterpret_cast<float*>(shared) + thread / 32 * 16 + lane / 4;
  if (thread < Shape::kConsumers)
#pragma unroll
    for (int i = 0; i < TILE_N / 2; ++i)
      to[(i / 4 * 8 + lane % 4 * 2 + i % 2) * Shape::kStride + i / 2 % 2 * 8] = sums[i];
  const auto cluster = cooperative_groups::this_cluster();
  cluster.sync();
  for (int i = part * Shape::kThreads + thread; i < Shape::kRows * TILE_N; i += kParts * Shape::kThreads) {
    const int64_t row = first_group * 64 + i % Shape::kRows, column = column_tile * TILE_N + i / Shape::kRows;
    if (row >= m || column >= n) continue;
    auto* place = reinterpret_cast<float*>(shared) + i / Shape::kRows * Shape::kStride + i % Shape::kRows;
    y[column * m + row] = *cluster.map_shared_rank(place, 0) + *cluster.map_shared_rank(place, 1);
  }
  cluster.sync();  // a block's shared memory lives until both have read it
#endif
}

template <int TILE_N, int kGroups>
void launch_tile(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                 cudaStream_t stream) {
  using Shape = Tile<TILE_N, kGroups>;
  auto* tiles = reinterpret_cast<HalfTile<TILE_N>*>(scratch);
  convert_to_half(x, tiles, n, k, stream);
  const auto kernel = gemm_q4_0_f16_wgmma_specialized_kernel<TILE_N, kGroups>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Shape::kBytes));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kParts, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3(static_cast<unsigned>(kParts * blocks_for(n, TILE_N)), static_cast<unsigned>(blocks_for(m, Shape::kRows)));
  config.blockDim = dim3(Shape::kThreads);
  config.dynamicSmemBytes = Shape::kBytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, w, static_cast<const HalfTile<TILE_N>*>(tiles), y, m, n));
}

inline void launch(Fragments w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                   cudaStream_t stream) {
  const auto tile = n <= 16 ? launch_tile<16, 1> : launch_tile<64, 2>;
  tile(w, x, y, scratch, m, n, k, stream);
}

inline const char* refuses(const ladder::Shape& shape) {
  static const char* const without_wgmma = refuses_without_wgmma(gemm_q4_0_f16_wgmma_specialized_kernel<16, 1>);
  return without_wgmma ? without_wgmma : Q4GemmFragments::refuses(shape);
}

inline const Stage<Q4GemmFragments> stage{
    "15_warp_specialized", "a warp copies, others multiply; two thread blocks share k", launch, {90, refuses}};

}  // namespace ladder::q4_gemm::warp_specialized
