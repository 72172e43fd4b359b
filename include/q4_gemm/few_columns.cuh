// The kernel for few columns, where the time is that of reading the weights once.
//
// The blocks of a cluster share a set of rows; each has a part of k. A warp has two or four tiles of 16 rows, and of
// its block's chunks every kPhases-th. It begins by asking for its first weights, which go past all caches into slots
// of its own in shared memory; then the block quantizes its part of x, or copies it if x is quantized; then the warp
// takes chunk after chunk from its slots and asks for the next ones. At the end warps and blocks send each other their
// sums. A warp waits for its block only around x and the sums, never in between.
//
// Quantized x of several columns may come into the slots too, each chunk beside the weights that it is multiplied with.
// The first product then waits for one chunk of x and not for all of them; but a warp that has several sets of rows
// asks for x anew with each.
//
// A multiprocessor answers loads in the order in which it was asked. So a warp asks for half of what its slots hold
// before it waits for the kernel before, then for x, then for the other half: the memory is busy all the while, and x
// waits behind one half only.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "activations.cuh"
#include "elements.cuh"
#include "layout.cuh"

namespace q4_gemm::detail {

constexpr int kTileBytes = 512, kTileScaleBytes = 64;  // of the repacked weights: numbers of a tile, and their scales

constexpr int log2_of(int power_of_two) { return power_of_two > 1 ? 1 + log2_of(power_of_two / 2) : 0; }

// A kernel: tiles of 16 rows of a block, a power of two; how many of them a warp has, which are neighbours in memory,
// too; warps that share these; slots of a warp, of which all but one are on their way; columns, which are 1 or a
// multiple of 8; the blocks that a multiprocessor has at once; and whether quantized x comes into the slots.
template <int tiles, int warp_tiles, int phases, int depth, int columns, int together, bool x_in_slots>
struct FewShape {
  static constexpr int kTiles = tiles, kWarpTiles = warp_tiles, kPhases = phases, kDepth = depth, kColumns = columns,
                       kTogether = together;
  static constexpr bool kXInSlots = x_in_slots;
  static constexpr int kWarps = kTiles / kWarpTiles * kPhases, kThreads = 32 * kWarps;
  static constexpr int kRowBits = log2_of(kTiles * kTileRows), kRows = 1 << kRowBits;
  static constexpr int kWeightBytes = kWarpTiles * (kTileBytes + kTileScaleBytes);  // of a slot
  // The first slots: those that are asked for before x, and after it.
  static constexpr int kEarly = kDepth / 2, kLate = kDepth - 1 - kEarly;
  static constexpr int kColumnTiles = (columns + 7) / 8, kLaneColumns = columns == 1 ? 1 : 2;  // of a tile, a lane's
  static constexpr int kScaleBytes = 8 * kLaneColumns;  // of a chunk of x, for the columns of a lane
  static_assert(kTiles % kWarpTiles == 0 && (kWarpTiles == 2 || kWarpTiles == 4), "a warp's tiles are in one group");
  static_assert((kTiles & (kTiles - 1)) == 0, "the blocks of a cluster share the rows evenly");
  static_assert(!kXInSlots || (kColumns > 1 && kColumns <= 32), "a lane copies the scales of a column");
};
template <class S, class W, class X>
__host__ __device__ constexpr bool x_comes_in_slots() {
  return S::kXInSlots && std::is_same_v<W, Packed> && std::is_same_v<X, QuantizedColumns>;
}

// Weights as llama.cpp stores them: no slots, a lane reads what it multiplies, two bytes at a time.
struct BlockRows {
  const unsigned char* data;
  int64_t rows, row_blocks;
};

template <class W, class X, class B, class Y>
struct FewProblem {
  static constexpr bool kPacked = std::is_same_v<W, Packed>, kQuantized = std::is_same_v<X, QuantizedColumns>;
  using Weights = W;
  using Activations = X;
  using Element = Y;
  W w;
  X x;
  const B* bias;  // or nullptr
  Y* y;
  int64_t y_stride, m, n;
  int64_t first_column;  // of this grid; columns from n on belong to the next one
  int row_blocks = 0, chunks = 0, part_chunks = 0,
      pass_chunks = 0;   // a block has a part of the chunks, and room for a pass of x
  int sets = 0;          // of kRows rows
  int cluster_bits = 0;  // a cluster has 1 << cluster_bits blocks
  bool dependent = false;
};

constexpr int kSumPad = 4;  // floats between the sums of a column and of the next, against bank conflicts
constexpr int kXScaleBytes = kChunkBlocks * 2;  // of a chunk and a column, quantized
constexpr int kSlotStep = 128;  // bytes: cp.async is slower if its target has another place within a line of memory

// Bytes of a slot: weights, then the numbers and scales of x, if they come there.
template <class S, class W, class X>
__host__ __device__ int slot_bytes(int columns) {
  const int scales = (columns + 1) / 2 * 2;
  const int x_bytes = x_comes_in_slots<S, W, X>() ? columns * kChunk + scales * kXScaleBytes : 0;
  return (S::kWeightBytes + x_bytes + kSlotStep - 1) / kSlotStep * kSlotStep;
}

// How the shared memory of a block is used: slots of all warps, x, sums of the warps, and mailboxes for those of other
// blocks.
struct FewMemory {
  int x_numbers, x_scales, sums, barriers, all;  // where each begins, in bytes
  int warp_sums, set_sums;                       // floats: of all warps, and with those of the other blocks
};
template <class S, class W, class X>
__host__ __device__ FewMemory few_memory(int columns, int pass_chunks, int cluster) {
  constexpr bool kXInSlots = x_comes_in_slots<S, W, X>();
  FewMemory memory;
  const int pairs = (columns + 1) / 2;
  memory.x_numbers = std::is_same_v<W, Packed> ? S::kWarps * S::kDepth * slot_bytes<S, W, X>(columns) : 0;
  memory.x_scales = memory.x_numbers + (kXInSlots ? 0 : pass_chunks * columns * kChunk);
  memory.sums = memory.x_scales + (kXInSlots ? 0 : pass_chunks * pairs * S::kScaleBytes);
  memory.warp_sums = columns * (S::kPhases * S::kRows + kSumPad);
  memory.set_sums = S::kPhases * cluster == 1 ? 0 : memory.warp_sums + (cluster == 1 ? 0 : columns * S::kRows);
  memory.barriers = memory.sums + 2 * memory.set_sums * 4;
  memory.all = memory.barriers + (cluster > 1 ? Mailboxes<2>::kBytes : 0);
  return memory;
}

constexpr float kOfNibbles = 1.0f / 16;  // what their products are multiplied with, in the scales of x

// 16 (q - 8) of four nibbles each, as signed bytes: in 4 bits, q with its top bit flipped is q - 8 in two's complement.
// (word & mask) ^ flip is one instruction, but the compiler makes two of it if it sees both constants.
__device__ inline int signed_nibbles(unsigned word) {
#if defined(__SIMT__) || !defined(__CUDA_ARCH__)
  return static_cast<int>((word & 0xf0f0f0f0u) ^ 0x80808080u);
#else
  int result;
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(result) : "r"(word), "r"(0xf0f0f0f0u), "r"(0x80808080u));
  return result;
#endif
}

// The tensor cores begin to add at the bits of the float 1.5 · 2^23. With a whole number of magnitude below 2^22 added,
// these bits are the float 1.5 · 2^23 + number. So d · number is one fused multiply-add, d · float - d · 1.5 · 2^23,
// whose last part is exact, since the scales of x have 11 bits.
constexpr int kMagicBits = 0x4b400000;
constexpr float kMagic = 0x1.8p23f;

// Where a block has its part of x, in the order in which lanes read it. For each chunk and column, 16 bytes for each t,
// of the chunk's two blocks 8 bytes each. Scales, times kOfNibbles: for each chunk and pair of columns, for each block,
// those of the columns.
template <class S>
struct PartOfX {
  char* numbers;
  float* scales;
  int columns;

  __device__ char* numbers_of(int chunk, int column) const { return numbers + (chunk * columns + column) * kChunk; }
  __device__ void store_scale(int chunk, int column, int b, float d) const {
    constexpr int kLane = S::kLaneColumns;
    const int pair = chunk * ((columns + 1) / 2) + column / kLane;
    float* to = scales + (pair * kChunkBlocks + b) * kLane + column % kLane;
    *to = d * kOfNibbles;
    if (kLane == 2 && column % 2 == 0 && column + 1 == columns) to[1] = 0.0f;
  }
};

// A block copies `count` chunks of quantized x from `first` on. Between its loads and their use it calls `meanwhile`,
// which asks for as many groups of asynchronous copies as it returns.
template <class S, class Meanwhile>
__device__ void copy_part(const QuantizedColumns& x, int64_t first_column, int first, int count, const PartOfX<S>& to,
                          Meanwhile meanwhile) {
  constexpr int kPieces = kChunk / 16;  // of a chunk of a column, 16 bytes each
  constexpr int kBatch = 4;             // loads of scales in flight
  const int pieces = to.columns * kPieces, all = count * to.columns;
  const auto place_of = [&](int chunk) { return (first + chunk) * x.n + first_column; };
  const auto scales_of = [&](int i) {
    return reinterpret_cast<const unsigned*>(x.scales)[place_of(i / to.columns) + i % to.columns];
  };
  const auto store = [&](int i, unsigned both) {
    to.store_scale(i / to.columns, i % to.columns, 0, scale_of(both & 0xffff));
    to.store_scale(i / to.columns, i % to.columns, 1, scale_of(both >> 16));
  };
  const int thread = static_cast<int>(threadIdx.x);
  unsigned loaded[kBatch];
#pragma unroll
  for (int j = 0; j < kBatch; ++j)
    if (thread + j * S::kThreads < all) loaded[j] = scales_of(thread + j * S::kThreads);
  for (int i = thread; i < count * pieces; i += S::kThreads)
    __pipeline_memcpy_async(to.numbers + 16 * i,
                            reinterpret_cast<const uint4*>(x.numbers) + place_of(i / pieces) * kPieces + i % pieces,
                            16);
  __pipeline_commit();
  const int later = meanwhile();
#pragma unroll
  for (int j = 0; j < kBatch; ++j)
    if (thread + j * S::kThreads < all) store(thread + j * S::kThreads, loaded[j]);
  for (int i = thread + kBatch * S::kThreads; i < all; i += S::kThreads) store(i, scales_of(i));
  if (later == S::kLate)
    __pipeline_wait_prior(S::kLate);
  else
    __pipeline_wait_prior(0);
}

// A block quantizes them. Eight neighbouring threads have a chunk of a column, each eight numbers.
template <class S, class P, class Meanwhile>
__device__ void quantize_part(const P& p, int64_t first_column, int first, int count, const PartOfX<S>& to,
                              Meanwhile meanwhile) {
  constexpr int kAtOnce = S::kThreads / 8;
  constexpr int kBatch = sizeof(typename decltype(p.x)::Loaded) > 16 ? 2 : 4;  // loads in flight
  const int b = threadIdx.x / 4 % 2, t = threadIdx.x % 4, all = to.columns * count;
  for (int begin = 0; begin < all; begin += kBatch * kAtOnce) {
    typename decltype(p.x)::Loaded loaded[kBatch];
    int columns[kBatch], chunks[kBatch];
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      const int i = begin + j * kAtOnce + static_cast<int>(threadIdx.x) / 8;
      columns[j] = S::kColumns == 1 ? 0 : i / count;
      chunks[j] = S::kColumns == 1 ? i : i % count;
      const int block = (first + chunks[j]) * kChunkBlocks + b;
      if (i < all && block < p.row_blocks)
        p.x.load(loaded[j], first_column + columns[j], int64_t{block} * kBlock + 8 * t);
      else
        p.x.clear(loaded[j]);
    }
    if (begin == 0) meanwhile();
#pragma unroll
    for (int j = 0; j < kBatch; ++j) {
      if (begin + j * kAtOnce >= all) break;
      const EightNumbers eight = p.x.numbers_of(loaded[j]);
      if (begin + j * kAtOnce + static_cast<int>(threadIdx.x) / 8 >= all) continue;
      auto* words = reinterpret_cast<unsigned*>(to.numbers_of(chunks[j], columns[j]) + 8 * b);
      if constexpr (std::is_same_v<decltype(p.w), Packed>) {
        *reinterpret_cast<uint2*>(words + 4 * t) = eight.words;
      } else {  // four numbers i belong to lane i % 4, with those that stand 16 places later
        words[2 * t % 4 * 4 + t / 2] = eight.words.x;
        words[(2 * t + 1) % 4 * 4 + t / 2] = eight.words.y;
      }
      if (t == 0) to.store_scale(chunks[j], columns[j], b, eight.d);
    }
  }
}

// What a lane multiplies of a tile, and its scales.
struct TilePart {
  unsigned words[4];
  float d[4];
};

// The four words and four scales of a lane, from blocks of q4_0: words[2 b + h] of row g + 8 h and block b.
__device__ inline void load_blocks(const BlockRows& w, int64_t first_row, int64_t first_block, TilePart& to) {
  auto& [words, d] = to;
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

// The same from a slot.
__device__ inline void load_slot(const char* numbers, const char* scales, TilePart& to) {
  auto& [words, d] = to;
  const int lane = threadIdx.x % 32;
  const uint4 four = reinterpret_cast<const uint4*>(numbers)[lane];
  const uint2 both = reinterpret_cast<const uint2*>(scales)[lane / 4];
  words[0] = four.x, words[1] = four.y, words[2] = four.z, words[3] = four.w;
  d[0] = scale_of(both.x & 0xffff), d[1] = scale_of(both.x >> 16);
  d[2] = scale_of(both.y & 0xffff), d[3] = scale_of(both.y >> 16);
}

// The scales of a chunk for the columns of a lane: floats, or in a slot float16 numbers, not divided yet.
template <class S, bool in_slot>
__device__ void load_x_scales(float (&to)[kChunkBlocks][S::kLaneColumns], const char* from) {
  if constexpr (in_slot) {
    const uint2 halves = *reinterpret_cast<const uint2*>(from);
    const unsigned words[S::kLaneColumns] = {halves.x, halves.y};
#pragma unroll
    for (int i = 0; i < S::kLaneColumns; ++i) {
      to[0][i] = scale_of(words[i] & 0xffff) * kOfNibbles;
      to[1][i] = scale_of(words[i] >> 16) * kOfNibbles;
    }
  } else {
    using Floats = std::conditional_t<S::kLaneColumns == 2, float4, float2>;
    *reinterpret_cast<Floats*>(to) = *reinterpret_cast<const Floats*>(from);
  }
}

// Tiles times 8 columns: x_numbers and x_scales are where the lane's part of the chunk begins.
template <class S, bool in_slot>
__device__ void multiply_tiles(float (&sums)[S::kWarpTiles][4], const TilePart (&tiles)[S::kWarpTiles],
                               const char* x_numbers, const char* x_scales) {
  constexpr int kLane = S::kLaneColumns;
  const uint4 x = *reinterpret_cast<const uint4*>(x_numbers);
  const unsigned x_words[4] = {x.x, x.y, x.z, x.w};
  alignas(16) float of_x[kChunkBlocks][kLane];
  float shifted[kChunkBlocks][kLane];
  load_x_scales<S, in_slot>(of_x, x_scales);
#pragma unroll
  for (int b = 0; b < kChunkBlocks; ++b)
#pragma unroll
    for (int i = 0; i < kLane; ++i) shifted[b][i] = -kMagic * of_x[b][i];
#pragma unroll
  for (int u = 0; u < S::kWarpTiles; ++u)
#pragma unroll
    for (int b = 0; b < kChunkBlocks; ++b) {
      const unsigned row = tiles[u].words[2 * b], row_8 = tiles[u].words[2 * b + 1];
      const int a[4] = {signed_nibbles(row << 4), signed_nibbles(row_8 << 4), signed_nibbles(row),
                        signed_nibbles(row_8)};
      const int column[2] = {static_cast<int>(x_words[2 * b]), static_cast<int>(x_words[2 * b + 1])};
      int products[4] = {kMagicBits, kMagicBits, kMagicBits, kMagicBits};
      int8_mma(products, a, column);
#pragma unroll
      for (int h = 0; h < 2; ++h)
#pragma unroll
        for (int i = 0; i < kLane; ++i) {
          const float product = fmaf(of_x[b][i], __int_as_float(products[2 * h + i]), shifted[b][i]);
          sums[u][2 * h + i] = fmaf(tiles[u].d[2 * b + h], product, sums[u][2 * h + i]);
        }
    }
}

// What a warp works on: of every set of rows that its cluster takes, kWarpTiles tiles from `tile` on; of the chunks of
// its block, from `begin` to `end`, those that its `phase` takes, as the warps that share tiles take turns; and the
// columns of its block.
template <class S>
struct FewShare {
  int cluster_blocks, rank, first_set, clusters;  // the set after one is `clusters` farther
  int warp, lane, g, t, tile, phase;              // g and t: see int8_mma
  int begin, end, first_chunk, set_chunks;        // set_chunks: of each set
  int64_t first_column;

  // Shifts and masks: a division by a number that is not known at compile time is dozens of instructions.
  template <class P>
  __device__ explicit FewShare(const P& p)
      : cluster_blocks(1 << p.cluster_bits),
        rank(static_cast<int>(blockIdx.x) & (cluster_blocks - 1)),
        first_set(static_cast<int>(blockIdx.x) >> p.cluster_bits),
        clusters(static_cast<int>(gridDim.x) >> p.cluster_bits),
        warp(threadIdx.x / 32),
        lane(threadIdx.x % 32),
        g(lane / 4),
        t(lane % 4),
        tile(warp % (S::kTiles / S::kWarpTiles) * S::kWarpTiles),
        phase(warp / (S::kTiles / S::kWarpTiles)),
        begin(min(rank * p.part_chunks, p.chunks)),
        end(min(begin + p.part_chunks, p.chunks)),
        first_chunk(begin + phase),
        set_chunks(first_chunk < end ? (end - first_chunk + S::kPhases - 1) / S::kPhases : 0),
        first_column(p.first_column + int64_t{blockIdx.y} * S::kColumns) {}

  __device__ int64_t tile_of(int set) const { return int64_t{set} * S::kTiles + tile; }  // of the matrix
  template <class P>
  __device__ int columns(const P& p) const {
    return static_cast<int>(min(p.n - first_column, int64_t{S::kColumns}));
  }
};

// Fills the slots of a warp, which take turns: with the weights of a chunk, and with the same chunk of x if x comes
// into the slots.
template <class S, class P>
struct Fetcher {
  static constexpr bool kPacked = P::kPacked;
  static constexpr bool kXInSlots = x_comes_in_slots<S, typename P::Weights, typename P::Activations>();
  const P& p;
  const FewShare<S> share;
  const int slot_size;
  char* const slots;
  int left = 0, next_set;  // chunks of the set whose weights are being asked for, and the set after it
  const uint4 *weight_scales = nullptr, *weights = nullptr;  // where the next chunk comes from
  const char *x_scales = nullptr, *x = nullptr;
  int x_left = 0;
  char* slot = nullptr;  // where it goes to
  int columns = 0;

  __device__ Fetcher(const P& problem, const FewShare<S>& of_warp, char* shared)
      : p(problem),
        share(of_warp),
        slot_size(slot_bytes<S, typename P::Weights, typename P::Activations>(kXInSlots ? share.columns(p) : 0)),
        slots(shared + share.warp * S::kDepth * slot_size),
        next_set(share.first_set) {}
  __device__ void begin_set() {
    if constexpr (kPacked) {
      if (next_set >= p.sets || share.tile_of(next_set) >= p.w.groups * kGroupTiles) return;
      const int64_t piece = share.tile_of(next_set) / kGroupTiles * p.chunks + share.first_chunk;
      const int64_t from = piece * kGroupTiles + share.tile_of(next_set) % kGroupTiles;
      weights = p.w.numbers + from * 32 + share.lane;
      weight_scales = reinterpret_cast<const uint4*>(p.w.scales) + from * (kTileScaleBytes / 16) + share.lane;
      left = share.set_chunks;
      next_set += share.clusters;
    }
  }
  // Asks for the weights of the next chunk; false if there is none.
  __device__ bool fetch_weights(char* to) {
    if (left == 0) return false;
    const int lane = share.lane;
#pragma unroll
    for (int u = 0; u < S::kWarpTiles; ++u)
      __pipeline_memcpy_async(to + u * kTileBytes + 16 * lane, weights + u * 32, 16);
    if (lane < S::kWarpTiles * kTileScaleBytes / 16)
      __pipeline_memcpy_async(to + S::kWarpTiles * kTileBytes + 16 * lane, weight_scales, 16);
    weights += S::kPhases * kPieceLanes;
    weight_scales += S::kPhases * kPieceScaleLanes / 2;
    if (--left == 0) begin_set();
    return true;
  }
  // Asks for the chunk of x that belongs to them, if it comes into the slots. An odd number of columns gets the last
  // one's scales twice.
  __device__ void fetch_x(char* to) {
    if constexpr (kXInSlots) {
      const int lane = share.lane;
      if (x_left == 0) {
        const int64_t place = p.x.place_of(share.first_column, int64_t{share.first_chunk} * kChunk);
        x = reinterpret_cast<const char*>(p.x.numbers) + place * kChunk + 16 * lane;
        x_scales = reinterpret_cast<const char*>(p.x.scales) + (place + min(lane, columns - 1)) * kXScaleBytes;
        x_left = share.set_chunks;
      }
      to += S::kWeightBytes;
#pragma unroll
      for (int i = 0; i < S::kColumns * kChunk; i += 32 * 16)
        if (i + 16 * lane < columns * kChunk) __pipeline_memcpy_async(to + i + 16 * lane, x + i, 16);
      if (lane < (columns + 1) / 2 * 2)
        __pipeline_memcpy_async(to + columns * kChunk + kXScaleBytes * lane, x_scales, kXScaleBytes);
      x += S::kPhases * p.x.n * kChunk;
      x_scales += S::kPhases * p.x.n * kXScaleBytes;
      --x_left;
    }
  }
  // The first slots, before the kernel waits for the one before. Returns for how many there are weights.
  __device__ int fetch_early_weights() {
    begin_set();
    int asked = 0;
#pragma unroll 1
    for (int i = 0; i < S::kEarly; ++i) {
      asked += fetch_weights(slots + i * slot_size);
      if (kPacked && !kXInSlots) __pipeline_commit();
    }
    return asked;
  }
  // After it: x for these, and then the other slots.
  __device__ void fetch_early_x(int asked, int of_columns) {
    columns = of_columns;
#pragma unroll 1
    for (int i = 0; kXInSlots && i < S::kEarly; ++i) {
      if (i < asked) fetch_x(slots + i * slot_size);
      __pipeline_commit();
    }
    slot = slots + S::kEarly * slot_size;
  }
  __device__ void fetch_late() {
#pragma unroll 1
    for (int i = 0; i < S::kLate; ++i) fetch();
  }
  __device__ void fetch() {
    if (fetch_weights(slot)) fetch_x(slot);
    if constexpr (kPacked) __pipeline_commit();
    slot = after(slot);
  }
  template <class Byte>
  __device__ Byte* after(Byte* one) const {
    return one == slots + (S::kDepth - 1) * slot_size ? slots : one + slot_size;
  }
};

// Where a lane reads x of its warp's first chunk, in bytes from where numbers and scales begin, and how far it is from
// there to the same place of the next chunk.
template <class S, bool in_slots>
struct LaneOfX {
  int numbers[S::kColumnTiles], scales[S::kColumnTiles];
  int numbers_step, scales_step;

  __device__ LaneOfX(const FewShare<S>& share, int columns) {
    const int pairs = (columns + 1) / 2;
#pragma unroll
    for (int j = 0; j < S::kColumnTiles; ++j) {  // columns that are not there are others once more
      const int column = min(8 * j + share.g, columns - 1);
      const int pair = S::kColumns == 1 ? 0 : min(4 * j + share.t, pairs - 1);
      numbers[j] = ((in_slots ? 0 : share.phase * columns) + column) * kChunk + 16 * share.t;
      scales[j] = in_slots ? columns * kChunk + pair * 2 * kXScaleBytes : (share.phase * pairs + pair) * S::kScaleBytes;
    }
    numbers_step = columns * kChunk, scales_step = pairs * S::kScaleBytes;
  }
};

// A pass of x, whose chunks a warp multiplies one after the other: each is in the slot of its weights, or in the
// block's part of x.
template <class S, bool in_slots>
struct PassOfX {
  const char *numbers[S::kColumnTiles], *scales[S::kColumnTiles];

  __device__ PassOfX(const LaneOfX<S, in_slots>& lane, const char* all_numbers, const char* all_scales) {
#pragma unroll
    for (int j = 0; j < S::kColumnTiles; ++j)
      numbers[j] = all_numbers + lane.numbers[j], scales[j] = all_scales + lane.scales[j];
  }
  __device__ void multiply(float (&sums)[S::kColumnTiles][S::kWarpTiles][4], const TilePart (&tiles)[S::kWarpTiles],
                           const LaneOfX<S, in_slots>& lane, const char* slot) {
#pragma unroll
    for (int j = 0; j < S::kColumnTiles; ++j) {
      if constexpr (in_slots) {
        const char* const x = slot + S::kWeightBytes;
        multiply_tiles<S, true>(sums[j], tiles, x + lane.numbers[j], x + lane.scales[j]);
      } else {
        multiply_tiles<S, false>(sums[j], tiles, numbers[j], scales[j]);
        numbers[j] += S::kPhases * lane.numbers_step, scales[j] += S::kPhases * lane.scales_step;
      }
    }
  }
};

// The tiles of a chunk: from a slot, or from blocks of q4_0.
template <class S, class P>
__device__ void load_tiles(const P& p, const FewShare<S>& share, int set, int chunk, const char* slot,
                           TilePart (&tiles)[S::kWarpTiles]) {
#pragma unroll
  for (int u = 0; u < S::kWarpTiles; ++u) {
    if constexpr (P::kPacked)
      load_slot(slot + u * kTileBytes, slot + S::kWarpTiles * kTileBytes + u * kTileScaleBytes, tiles[u]);
    else
      load_blocks(p.w, (share.tile_of(set) + u) * kTileRows, int64_t{chunk} * kChunkBlocks, tiles[u]);
  }
}

// Brings a pass of x into the block's part of it. Meanwhile, in the first pass, the warp asks for the slots that are
// left.
template <class S, class P>
__device__ void bring_x(const P& p, int64_t first_column, int pass, int pass_end, const PartOfX<S>& part, bool is_first,
                        Fetcher<S, P>& fetcher) {
  const auto fetch_late = [&] {
#pragma unroll 1
    for (int i = 0; i < (is_first ? S::kLate : 0); ++i) fetcher.fetch();
    return is_first ? S::kLate : 0;
  };
  if constexpr (P::kPacked && P::kQuantized)
    copy_part(p.x, first_column, pass, pass_end - pass, part, fetch_late);
  else
    quantize_part(p, first_column, pass, pass_end - pass, part, fetch_late);
  __syncthreads();
}

// The sums of a set of rows become results: warps that share rows add up theirs, and the block of rank r gets those of
// the r-th slice of the rows from the other blocks. Two buffers in turn: a set's sums are written while those of the
// set before may still be read.
template <class S, class P>
struct SumsOfSet {
  static constexpr int kRowBits = S::kRowBits, kRows = S::kRows, kColumnStep = S::kPhases * kRows + kSumPad;
  using Sums = float[S::kColumnTiles][S::kWarpTiles][4];  // of a lane
  const P& p;
  const FewShare<S> share;
  const int columns;
  const int64_t first_row;

  __device__ void store(int64_t row, int column, float sum) const {
    if (row >= p.m) return;
    if (p.bias != nullptr) sum += to_float(p.bias[row]);
    p.y[(share.first_column + column) * p.y_stride + row] = from_float<typename P::Element>(sum);
  }
  // If a warp has all of k.
  __device__ void store_own(const Sums& sums) const {
#pragma unroll
    for (int j = 0; j < S::kColumnTiles; ++j)
#pragma unroll
      for (int u = 0; u < S::kWarpTiles; ++u)
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int column = 8 * j + 2 * share.t + i % 2;
          if (column < columns)
            store(first_row + (share.tile + u) * kTileRows + share.g + i / 2 * 8, column, sums[j][u][i]);
        }
  }
  __device__ void write(const Sums& sums, float* of_warps) const {
#pragma unroll
    for (int j = 0; j < S::kColumnTiles; ++j)
#pragma unroll
      for (int i = 0; i < S::kLaneColumns; ++i) {
        const int column = 8 * j + 2 * share.t + i;
        if (column >= columns) continue;
        float* const to = of_warps + column * kColumnStep + share.phase * kRows + share.tile * kTileRows + share.g;
#pragma unroll
        for (int eight = 0; eight < 2 * S::kWarpTiles; ++eight) to[8 * eight] = sums[j][eight / 2][eight % 2 * 2 + i];
      }
  }
  // `of_warps` and `of_blocks` are the buffer's; `opens`: the other blocks' mailboxes may not be open yet.
  __device__ void exchange(const Sums& sums, float* of_warps, float* of_blocks, const Mailboxes<2>& mailboxes,
                           int buffer, unsigned parity, bool opens) const {
    write(sums, of_warps);
    __syncthreads();
    if (p.cluster_bits > 0 && opens) mailboxes.wait_until_open();
    const int slice_bits = kRowBits - p.cluster_bits, all = columns << kRowBits;
    const auto place = [&](int block, int column, int row) {
      return of_blocks + ((block * columns + column) << slice_bits) + (row & ((1 << slice_bits) - 1));
    };
    if (p.cluster_bits > 0 && threadIdx.x == 0)
      mailboxes.expect(buffer, (share.cluster_blocks - 1) * columns * 4 << slice_bits);
#pragma unroll 1
    for (int i = threadIdx.x; i < all; i += S::kThreads) {
      const int column = i >> kRowBits, row = i & (kRows - 1), to = row >> slice_bits;
      const float* const parts = of_warps + column * kColumnStep + row;
      float sum = 0.0f;
#pragma unroll
      for (int phase = 0; phase < S::kPhases; ++phase) sum += parts[phase * kRows];
      if (p.cluster_bits == 0)
        store(first_row + row, column, sum);
      else if (to == share.rank)
        *place(share.rank, column, row) = sum;  // for this thread
      else
        mailboxes.send(place(share.rank, column, row), to, buffer, sum);
    }
    if (p.cluster_bits > 0) {
      mailboxes.wait(buffer, parity);
#pragma unroll 1
      for (int i = threadIdx.x; i < all; i += S::kThreads) {
        const int column = i >> kRowBits, row = i & (kRows - 1);
        if (row >> slice_bits != share.rank) continue;
        float sum = 0.0f;
#pragma unroll 1
        for (int block = 0; block < share.cluster_blocks; ++block) sum += *place(block, column, row);
        store(first_row + row, column, sum);
      }
    }
  }
};

template <class S, class W, class X, class B, class Y>
__global__ void __launch_bounds__(S::kThreads, S::kTogether) few_columns(const FewProblem<W, X, B, Y> p) {
  using P = FewProblem<W, X, B, Y>;
  constexpr bool kXInSlots = x_comes_in_slots<S, W, X>();
  // When the next kernel may start: not before the one before this one has ended, so that no more than two kernels
  // share a multiprocessor. Where its blocks have no room beside this one's, later is a little faster, as was measured.
  enum class Next { at_once, after_x, before_sums };
  constexpr Next kNext = S::kTogether > 1 ? Next::at_once : kXInSlots ? Next::before_sums : Next::after_x;
  extern __shared__ __align__(128) uint4 shared_memory[];
  char* const shared = reinterpret_cast<char*>(shared_memory);
  const FewShare<S> share(p);
  Fetcher<S, P> fetcher(p, share, shared);
  const int asked = fetcher.fetch_early_weights();
  const int columns = share.columns(p);
  const FewMemory memory = few_memory<S, W, X>(columns, p.pass_chunks, share.cluster_blocks);
  const Mailboxes<2> mailboxes = {reinterpret_cast<uint64_t*>(shared + memory.barriers)};
  if (p.cluster_bits > 0) mailboxes.open();
  if (p.dependent) wait_for_previous_kernel();
  if (p.dependent && kNext == Next::at_once) let_next_kernel_start();
  if (p.cluster_bits > 0 && kNext == Next::after_x) mailboxes.wait_until_open();  // the others: with their first sums
  fetcher.fetch_early_x(asked, columns);
  if (kXInSlots) fetcher.fetch_late();

  const PartOfX<S> part = {shared + memory.x_numbers, reinterpret_cast<float*>(shared + memory.x_scales), columns};
  const LaneOfX<S, kXInSlots> lane(share, columns);
  const char* slot = fetcher.slots;
  int buffer = 0;
  unsigned parity = 0;
  bool has_x = kXInSlots;
  for (int set = share.first_set; set < p.sets; set += share.clusters) {
    float sums[S::kColumnTiles][S::kWarpTiles][4] = {};
    for (int pass = share.begin; pass < share.end; pass += p.pass_chunks) {
      const int pass_end = min(pass + p.pass_chunks, share.end);
      if (!has_x) {
        if (pass > share.begin || set > share.first_set) __syncthreads();  // all threads have read the pass before
        const bool is_first = pass == share.begin && set == share.first_set;
        bring_x(p, share.first_column, pass, pass_end, part, is_first, fetcher);
        has_x = p.pass_chunks >= share.end - share.begin;
        if (kNext == Next::after_x && is_first && p.dependent) let_next_kernel_start();
      }
      if (share.tile_of(set) * kTileRows >= p.m) continue;
      PassOfX<S, kXInSlots> x(lane, part.numbers, reinterpret_cast<const char*>(part.scales));
      for (int chunk = pass + share.phase; chunk < pass_end; chunk += S::kPhases) {
        TilePart tiles[S::kWarpTiles];
        if constexpr (P::kPacked) {
          __pipeline_wait_prior(S::kDepth - 2);
          __syncwarp();  // all lanes' copies of this slot are there, and no lane still reads the slot that comes next
          fetcher.fetch();
        }
        load_tiles(p, share, set, chunk, slot, tiles);
        x.multiply(sums, tiles, lane, slot);
        slot = fetcher.after(slot);
      }
    }

    if (p.dependent && kNext == Next::before_sums && set + share.clusters >= p.sets) let_next_kernel_start();
    const SumsOfSet<S, P> result = {p, share, columns, int64_t{set} * S::kRows};
    if (S::kPhases == 1 && p.cluster_bits == 0) {
      result.store_own(sums);
      continue;
    }
    float* const of_warps = reinterpret_cast<float*>(shared + memory.sums) + buffer * memory.set_sums;
    const bool opens = kNext != Next::after_x && set == share.first_set;
    result.exchange(sums, of_warps, of_warps + memory.warp_sums, mailboxes, buffer, parity, opens);
    parity ^= static_cast<unsigned>(buffer);
    buffer ^= 1;
  }
}

}  // namespace q4_gemm::detail
