// The kernel for few columns, where the time is that of reading the weights once.
//
// The blocks of a cluster share a set of groups of rows; each has a part of k. A warp has one tile of 16 rows, and of
// its block's chunks every kPhases-th. It begins by asking for its first weights, which go past all caches into slots
// of its own in shared memory; then the block quantizes its part of x; then the warp takes tile after tile from its
// slots and asks for the next ones. At the end warps and blocks send each other their sums. A warp waits for its block
// only around x and the sums, never in between.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "activations.cuh"
#include "elements.cuh"
#include "layout.cuh"

namespace q4_gemm::detail {

// A kernel: groups of 64 rows of a block, warps that share a tile, tiles that a warp has asked for and not used yet
// plus the one it uses, and tiles of 8 columns.
template <int groups, int phases, int depth, int column_tiles>
struct FewShape {
  static constexpr int kGroups = groups, kPhases = phases, kDepth = depth, kColumnTiles = column_tiles;
  static constexpr int kWarps = kGroups * kGroupTiles * kPhases, kThreads = 32 * kWarps, kRows = kGroups * kGroupRows;
  static constexpr int kColumns = 8 * kColumnTiles;
  static constexpr int kTogether = (kColumnTiles > 2 ? 512 : 1024) / kThreads;  // blocks for which there are registers
};

// Weights as llama.cpp stores them: no slots, a lane reads what it multiplies, two bytes at a time.
struct BlockRows {
  const unsigned char* data;
  int64_t rows, row_blocks;
};

template <class W, class X, class B, class Y>
struct FewProblem {
  W w;
  X x;
  const B* bias;  // or nullptr
  Y* y;
  int64_t y_stride, m, n;
  int64_t first_column;  // of this grid; columns from n on belong to the next one
  int row_blocks = 0, chunks = 0, part_chunks = 0,
      pass_chunks = 0;  // a block has a part of the chunks, and room for a pass of x
  int sets = 0;         // of kRows rows
  int cluster = 1;
  bool dependent = false;
};

constexpr int kSlotBytes = 512 + 64;  // of a tile: numbers, then scales
constexpr int kSlicePad = 4;

// How the shared memory of a block is used: slots of all warps, x, sums of the warps.
struct FewMemory {
  int slots, x_numbers, x_scales, sums, all;  // where each begins, in bytes
  int sums_size;                              // floats of one of the two buffers
};
template <class S, class W>
__host__ __device__ FewMemory few_memory(int columns, int pass_chunks, int cluster) {
  FewMemory memory;
  const int pairs = (columns + 1) / 2;
  memory.slots = 0;
  memory.x_numbers = std::is_same_v<W, Packed> ? S::kWarps * S::kDepth * kSlotBytes : 0;
  memory.x_scales = memory.x_numbers + pass_chunks * columns * kChunk;
  memory.sums = memory.x_scales + pass_chunks * pairs * 16;
  memory.sums_size = S::kPhases * cluster * columns * (S::kRows / cluster + kSlicePad);
  const bool has_sums = S::kPhases * cluster > 1;
  memory.all = memory.sums + (has_sums ? 2 * memory.sums_size * 4 : 0);
  return memory;
}

// 16 (q - 8) of four nibbles each, as signed bytes: in 4 bits, q with its top bit flipped is q - 8 in two's complement.
__device__ inline int low_nibbles(unsigned word) { return static_cast<int>((word << 4 & 0xf0f0f0f0u) ^ 0x80808080u); }
__device__ inline int high_nibbles(unsigned word) { return static_cast<int>((word & 0xf0f0f0f0u) ^ 0x80808080u); }

// A float with 1.5 · 2^23 in its bits' place of whole numbers: with a whole number of magnitude below 2^22 added to its
// bits, it is that number plus 1.5 · 2^23.
constexpr int kMagicBits = 0x4b400000;
constexpr float kMagic = 0x1.8p23f;

// A block quantizes `count` chunks of x from `first` on, or copies them if they are quantized, in the order in which
// lanes read them: for each chunk and column, 16 bytes for each t, of the chunk's two blocks 8 bytes each. Scales are
// divided by the 16 of the nibbles: for each chunk and pair of columns, those of the first block, then of the second.
template <class S, class P>
__device__ void quantize_part(const P& p, int64_t first_column, int columns, int first, int count, unsigned* numbers,
                              float* scales) {
  constexpr int kBatch = sizeof(typename decltype(p.x)::Loaded) > 16 ? 2 : 4;  // so many loads in flight
  const int column_tasks = count * 8, tasks = columns * column_tasks, pairs = (columns + 1) / 2;
  for (int begin = 0; begin < tasks; begin += kBatch * S::kThreads) {
    typename decltype(p.x)::Loaded loaded[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      const int task = begin + i * S::kThreads + static_cast<int>(threadIdx.x);
      const int column = task / column_tasks, rest = task - column * column_tasks;
      const int block = (first + rest / 8) * kChunkBlocks + rest / 4 % 2;
      if (task < tasks && block < p.row_blocks)
        p.x.load(loaded[i], first_column + column, int64_t{block} * kBlock + rest % 4 * 8);
      else
        p.x.clear(loaded[i]);
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      if (begin + i * S::kThreads >= tasks) break;
      const int task = begin + i * S::kThreads + static_cast<int>(threadIdx.x);
      const int column = task / column_tasks, rest = task - column * column_tasks;
      const int chunk = rest / 8, b = rest / 4 % 2, t = rest % 4;
      const EightNumbers eight = p.x.numbers_of(loaded[i]);
      if (task >= tasks) continue;
      unsigned* to = numbers + (chunk * columns + column) * (kChunk / 4) + 2 * b;
      if constexpr (std::is_same_v<decltype(p.w), Packed>) {
        *reinterpret_cast<uint2*>(to + 4 * t) = eight.words;
      } else {  // four numbers i belong to lane i % 4, with those that stand 16 places later
        to[2 * t % 4 * 4 + t / 2] = eight.words.x;
        to[(2 * t + 1) % 4 * 4 + t / 2] = eight.words.y;
      }
      if (t != 0) continue;
      float* scale = scales + (chunk * pairs + column / 2) * 4 + 2 * b + column % 2;
      scale[0] = eight.d * 0.0625f;
      if (column % 2 == 0 && column + 1 == columns) scale[1] = 0.0f;
    }
  }
}

// The four words and four scales of a lane, from blocks of q4_0: words[2 b + h] of row g + 8 h and block b.
__device__ inline void load_blocks(const BlockRows& w, int64_t first_row, int64_t first_block, unsigned (&words)[4],
                                   float (&d)[4]) {
  const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int64_t row = first_row + g + i % 2 * 8, block = first_block + i / 2;
    words[i] = 0, d[i] = 0.0f;
    if (row >= w.rows || block >= w.row_blocks) continue;
    const auto* from = reinterpret_cast<const unsigned short*>(w.data + (row * w.row_blocks + block) * kBlockBytes);
    words[i] = from[1 + 2 * t] | static_cast<unsigned>(from[2 + 2 * t]) << 16;
    d[i] = scale_of(from[0]);
  }
}

template <class S, class W, class X, class B, class Y>
__global__ void __launch_bounds__(S::kThreads, S::kTogether) few_columns(const FewProblem<W, X, B, Y> p) {
  constexpr int kPhases = S::kPhases, kDepth = S::kDepth, kColumnTiles = S::kColumnTiles;
  constexpr bool kPacked = std::is_same_v<W, Packed>;
  extern __shared__ uint4 shared_memory[];
  char* const shared = reinterpret_cast<char*>(shared_memory);
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  if (p.cluster > 1) cluster.barrier_arrive();  // the wait is below, where it no longer takes time
#endif
  const int rank = static_cast<int>(blockIdx.x) % p.cluster, clusters = static_cast<int>(gridDim.x) / p.cluster;
  const int first_set = static_cast<int>(blockIdx.x) / p.cluster;
  const int64_t first_column = p.first_column + int64_t{blockIdx.y} * S::kColumns;
  const int columns = static_cast<int>(min(p.n - first_column, int64_t{S::kColumns})), pairs = (columns + 1) / 2;
  const FewMemory memory = few_memory<S, W>(columns, p.pass_chunks, p.cluster);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
  const int tile = warp % (S::kWarps / kPhases), phase = warp / (S::kWarps / kPhases);  // of the block's rows
  const int begin = min(rank * p.part_chunks, p.chunks), end = min(begin + p.part_chunks, p.chunks);

  // Where the next tile comes from, and goes to.
  char* const slots = shared + memory.slots + warp * kDepth * kSlotBytes;
  int fetch_set = first_set, fetch_chunk = begin + phase, fetch_slot = 0;
  const auto group_of = [&](int set) { return int64_t{set} * S::kGroups + tile / kGroupTiles; };
  const auto fetch = [&] {
    if constexpr (kPacked) {
      while (fetch_set < p.sets && (fetch_chunk >= end || group_of(fetch_set) >= p.w.groups))
        fetch_set += clusters, fetch_chunk = begin + phase;
      if (fetch_set < p.sets) {
        const int64_t lanes = ((group_of(fetch_set) * p.chunks + fetch_chunk) * kGroupTiles + tile % kGroupTiles) * 32;
        char* slot = slots + fetch_slot * kSlotBytes;
        __pipeline_memcpy_async(slot + 16 * lane, p.w.numbers + lanes + lane, 16);
        if (lane < 4)
          __pipeline_memcpy_async(slot + 512 + 16 * lane, reinterpret_cast<const uint4*>(p.w.scales + lanes / 4) + lane,
                                  16);
        fetch_chunk += kPhases;
      }
      __pipeline_commit();
      fetch_slot = fetch_slot + 1 == kDepth ? 0 : fetch_slot + 1;
    }
  };
  if (p.dependent) let_next_kernel_start();
  for (int i = 0; i < kDepth - 1; ++i) fetch();
  if (p.dependent) wait_for_previous_kernel();

  auto* x_numbers = reinterpret_cast<uint4*>(shared + memory.x_numbers);
  auto* x_scales = reinterpret_cast<float4*>(shared + memory.x_scales);
  const uint4* lane_numbers[kColumnTiles];
  const float4* lane_scales[kColumnTiles];
#pragma unroll
  for (int j = 0; j < kColumnTiles; ++j) {  // columns that are not there are others once more
    lane_numbers[j] = x_numbers + min(8 * j + g, columns - 1) * 4 + t;
    lane_scales[j] = x_scales + min(4 * j + t, pairs - 1);
  }

  int slot = 0, buffer = 0;
  bool has_x = false;
  for (int set = first_set; set < p.sets; set += clusters) {
    float sums[kColumnTiles][4] = {};
    for (int pass = begin; pass < end; pass += p.pass_chunks) {
      const int pass_end = min(pass + p.pass_chunks, end);
      if (!has_x) {
        if (pass > begin || set > first_set) __syncthreads();  // nobody still reads the pass before
        quantize_part<S>(p, first_column, columns, pass, pass_end - pass, reinterpret_cast<unsigned*>(x_numbers),
                         reinterpret_cast<float*>(x_scales));
        __syncthreads();
        has_x = p.pass_chunks >= end - begin;
      }
      if (group_of(set) * kGroupRows >= p.m) continue;
      for (int chunk = pass + phase; chunk < pass_end; chunk += kPhases) {
        unsigned words[4];
        float d[4];
        if constexpr (kPacked) {
          __pipeline_wait_prior(kDepth - 2);
          __syncwarp();  // all lanes' copies of this tile are there, and no lane still reads the slot that comes next
          fetch();
          const char* from = slots + slot * kSlotBytes;
          const uint4 numbers = reinterpret_cast<const uint4*>(from)[lane];
          const uint2 scales = reinterpret_cast<const uint2*>(from + 512)[g];
          words[0] = numbers.x, words[1] = numbers.y, words[2] = numbers.z, words[3] = numbers.w;
          d[0] = scale_of(scales.x & 0xffff), d[1] = scale_of(scales.x >> 16);
          d[2] = scale_of(scales.y & 0xffff), d[3] = scale_of(scales.y >> 16);
          slot = slot + 1 == kDepth ? 0 : slot + 1;
        } else {
          load_blocks(p.w, int64_t{set} * S::kRows + tile * kTileRows, int64_t{chunk} * kChunkBlocks, words, d);
        }
#pragma unroll
        for (int j = 0; j < kColumnTiles; ++j) {
          const uint4 x = lane_numbers[j][(chunk - pass) * columns * 4];
          const float4 of_x = lane_scales[j][(chunk - pass) * pairs];
          const unsigned x_words[4] = {x.x, x.y, x.z, x.w};
          const float x_d[4] = {of_x.x, of_x.y, of_x.z, of_x.w};
#pragma unroll
          for (int b = 0; b < kChunkBlocks; ++b) {
            const unsigned row = words[2 * b], row_8 = words[2 * b + 1];
            const int a[4] = {low_nibbles(row), low_nibbles(row_8), high_nibbles(row), high_nibbles(row_8)};
            const int column[2] = {static_cast<int>(x_words[2 * b]), static_cast<int>(x_words[2 * b + 1])};
            int products[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
            int8_mma(products, a, column);
#pragma unroll
            for (int i = 0; i < 4; ++i)
              sums[j][i] += d[2 * b + i / 2] * x_d[2 * b + i % 2] * (__int_as_float(products[i]) - kMagic);
          }
        }
      }
    }

    const auto store = [&](int64_t row, int column, float sum) {
      if (row >= p.m) return;
      if (p.bias != nullptr) sum += to_float(p.bias[row]);
      p.y[(first_column + column) * p.y_stride + row] = from_float<Y>(sum);
    };
    const int64_t first_row = int64_t{set} * S::kRows;
    if (kPhases == 1 && p.cluster == 1) {
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 8 * j + 2 * t + i % 2;
          if (column < columns) store(first_row + tile * kTileRows + g + i / 2 * 8, column, sums[j][i]);
        }
      continue;
    }
    // The block of rank r adds up the r-th slice of the set's rows. Two buffers in turn: a set's sums are written while
    // other blocks may still read those of the set before.
    const int slice = S::kRows / p.cluster, step = slice + kSlicePad;
    float* const parts = reinterpret_cast<float*>(shared + memory.sums) + buffer * memory.sums_size;
#if __CUDA_ARCH__ >= 900
    if (p.cluster > 1 && set == first_set) cluster.barrier_wait();  // all blocks have begun: their memory is there
#endif
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = tile * kTileRows + g + 8 * h, owner = row / slice;
      float* to = parts + (rank * kPhases + phase) * columns * step + row % slice;
#if __CUDA_ARCH__ >= 900
      if (p.cluster > 1) to = cluster.map_shared_rank(to, owner);
#endif
#pragma unroll
      for (int j = 0; j < kColumnTiles; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int column = 8 * j + 2 * t + i;
          if (column < columns) to[column * step] = sums[j][2 * h + i];
        }
    }
#if __CUDA_ARCH__ >= 900
    if (p.cluster > 1)
      cluster.sync();
    else
#endif
      __syncthreads();
    for (int i = threadIdx.x; i < columns * slice; i += S::kThreads) {
      const int column = i / slice, row = i % slice;
      float sum = 0.0f;
      for (int part = 0; part < p.cluster * kPhases; ++part) sum += parts[(part * columns + column) * step + row];
      store(first_row + rank * slice + row, column, sum);
    }
    buffer ^= 1;
  }
}

}  // namespace q4_gemm::detail
