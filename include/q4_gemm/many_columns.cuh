// Many columns: Hopper's tensor cores multiply for four warps at a time, and weights become what they take, bytes or
// float16, in the registers that they read.
//
// A thread block has a tile of 64 · kGroups rows and kColumns columns of y, and a part of k. Three warps, the
// producers, let the copy engine bring chunks of 64 k into a ring in shared memory: numbers, scales and x, each in the
// order in which it is used. Four warps for each group of 64 rows, the consumers, multiply. The blocks of a cluster
// have the same tile and different parts of k, and add up their sums through distributed shared memory.
#pragma once

#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "activations.cuh"
#include "choice.cuh"
#include "elements.cuh"
#include "layout.cuh"
#include "wgmma.cuh"

namespace q4_gemm {

namespace detail {

constexpr int kMostChunks = 4;  // of a copy; x is padded with zeros to a multiple of it
__host__ __device__ constexpr int64_t padded_chunks(int64_t chunks) {
  return (chunks + kMostChunks - 1) / kMostChunks * kMostChunks;
}

// x as the copy engine wants it: for each tile of columns and each chunk of k, panels which have 16 bytes for each
// column: 16 numbers of k as int8, or 8 as float16. The order of k within a block is that in which a word of weights
// falls apart. If scales are exact, the scales of x follow as float32, divided by 16 (see byte_fragments_of): those of
// the chunk's first block, then those of its second, each in the order of place_of_scale.
template <int kColumns, Scales kScales>
struct XTile {
  static constexpr int kPanels = kChunk / (kScales == Scales::exact ? 16 : 8);
  static constexpr int kNumbers = kPanels * kColumns;  // uint4
  static constexpr int kBytes = kNumbers * 16 + (kScales == Scales::exact ? kChunkBlocks * kColumns * 4 : 0);
};
// Of 16 neighbouring columns, a lane of wgmma has the sums of four: 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t. Their scales are
// neighbours.
__host__ __device__ constexpr int place_of_scale(int column) {
  return column / 16 * 16 + column % 8 / 2 * 4 + column % 16 / 8 * 2 + column % 2;
}

__device__ inline uint32_t bits_of(__half2 two) {
  uint32_t bits;
  memcpy(&bits, &two, sizeof bits);
  return bits;
}
__device__ inline __half2 as_half2(uint32_t bits) {
  __half2 two;
  memcpy(&two, &bits, sizeof two);
  return two;
}

// The numbers themselves, as closely as they are known.
__device__ inline void values_of(const EightNumbers& eight, float (&to)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    to[i] = eight.d * static_cast<signed char>((i < 4 ? eight.words.x : eight.words.y) >> i % 4 * 8);
}
template <class T>
__device__ void values_of(const Eight<T>& eight, float (&to)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) to[i] = to_float(eight.values[i]);
}

// A thread converts eight neighbouring numbers of a column. Four neighbouring lanes have a block, and a warp the same
// block of eight columns, so that it writes 128 bytes at a time. The grid has kConvertWarps blocks of k along x, tiles
// of columns along y, and what is in a tile along z. X is Columns or QuantizedColumns.
constexpr int kConvertWarps = 8;
template <int kColumns, Scales kScales, class X>
__global__ void __launch_bounds__(32 * kConvertWarps)
    convert_x_kernel(X x, unsigned char* __restrict__ to, int64_t n, int64_t k, int64_t chunks, bool dependent) {
  if (dependent) wait_for_previous_kernel();
  let_next_kernel_start();
  using Tile = XTile<kColumns, kScales>;
  const int64_t block = int64_t{blockIdx.x} * kConvertWarps + threadIdx.x / 32, chunk = block / kChunkBlocks;
  const int place = static_cast<int>(blockIdx.z) * 8 + threadIdx.x % 32 / 4, b = static_cast<int>(block % kChunkBlocks);
  const int64_t column = int64_t{blockIdx.y} * kColumns + place;
  if (chunk >= chunks) return;
  const int t = threadIdx.x % 4;
  typename X::Loaded loaded;
  if (column < n && block * kBlock < k)
    x.load(loaded, column, block * kBlock + 8 * t);
  else
    x.clear(loaded);

  unsigned char* tile = to + (blockIdx.y * chunks + chunk) * Tile::kBytes;
  const auto word_of = [&](int panel) -> uint32_t& {
    return reinterpret_cast<uint32_t*>(tile)[((b * Tile::kPanels / kChunkBlocks + panel) * kColumns + place) * 4 + t];
  };
  if constexpr (kScales == Scales::exact) {
    const EightNumbers eight = x.numbers_of(loaded);
    word_of(0) = eight.words.x, word_of(1) = eight.words.y;
    if (t == 0)
      reinterpret_cast<float*>(tile + Tile::kNumbers * 16)[b * kColumns + place_of_scale(place)] = eight.d / 16;
  } else {
    float v[8];
    values_of(loaded, v);
    // Of each of a word's four pairs, the first number; the second one is 2 farther.
    constexpr int kFirst[4] = {0, 4, 1, 5};
#pragma unroll
    for (int i = 0; i < 4; ++i) word_of(i) = bits_of(__floats2half2_rn(v[kFirst[i]], v[kFirst[i] + 2]));
  }
}

// word & mask | 0x64006400. The compiler makes two instructions of it if it sees both constants.
template <uint32_t kMask>
__device__ __half2 pair_at(uint32_t word) {
#if defined(__SIMT__) || !defined(__CUDA_ARCH__)
  return as_half2((word & kMask) | 0x64006400u);
#else
  uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(bits) : "r"(word), "n"(kMask), "r"(0x64006400u));
  return as_half2(bits);
#endif
}

// The four pairs of a word, as float16: q - 8, exactly. 0x6400 is 1024, whose last bits are whole numbers.
__device__ inline void numbers_of(uint32_t word, uint32_t (&pairs)[4]) {
  const __half2 minus_1032 = as_half2(0xe408e408u), minus_72 = as_half2(0xd480d480u), sixteenth = as_half2(0x2c002c00u);
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    pairs[2 * i] = bits_of(__hadd2(pair_at<0x000f000fu>(word >> 8 * i), minus_1032));
    pairs[2 * i + 1] = bits_of(__hfma2(pair_at<0x00f000f0u>(word >> 8 * i), sixteenth, minus_72));
  }
}

// What the two wgmmas of a block of 32 k take from a lane, as float16: rows[h] is the word of row g + 8 h, scales the
// bits of both rows' scales, with which the weights are multiplied and rounded.
__device__ inline void half_fragments_of(const uint32_t (&rows)[2], uint32_t scales, uint32_t (&a)[2][4]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    uint32_t pairs[4];
    numbers_of(rows[h], pairs);
    const __half2 both = as_half2(scales), d = h == 0 ? __low2half2(both) : __high2half2(both);
#pragma unroll
    for (int i = 0; i < 4; ++i) a[i / 2][i % 2 * 2 + h] = bits_of(__hmul2(as_half2(pairs[i]), d));
  }
}
// And what its one wgmma takes as int8: 16 (q - 8), which is q in the upper half of a byte with the highest bit turned.
__device__ inline void byte_fragments_of(const uint32_t (&rows)[2], uint32_t (&a)[4]) {
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    a[h] = (rows[h] << 4 & 0xf0f0f0f0u) ^ 0x80808080u;
    a[2 + h] = (rows[h] & 0xf0f0f0f0u) ^ 0x80808080u;
  }
}

// Whether this is the one lane of its warp that shall act for it. All 32 lanes must call it.
__device__ inline bool is_elected() {
#if defined(__SIMT__) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
  return threadIdx.x % 32 == 0;
#else
  uint32_t elected;
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p;}" : "=r"(elected));
  return elected != 0;
#endif
}

// How many registers each thread of this warpgroup has from here on: more, which others have given away, or fewer.
template <bool kMore, int kRegisters>
__device__ void set_registers() {
#if !defined(__SIMT__) && defined(__CUDA_ARCH_FEAT_SM90_ALL)
  if constexpr (kMore)
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
  else
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

// The shape of a kernel: its tile of y; `ways`, the warpgroups that take turns with the stages of a group of rows; and
// the ring. To start a copy takes its thread as long whether it is short or long, so a stage of the ring has several
// chunks where they are small.
template <int columns, int groups, int ways, Scales scales, int blocks_per_sm>
struct ManyShape {
  static constexpr int kColumns = columns, kGroups = groups, kWays = ways, kBlocksPerSm = blocks_per_sm;
  static constexpr Scales kScales = scales;
  using X = XTile<kColumns, kScales>;
  static constexpr int kRoom = (kBlocksPerSm == 1 ? 226 : 112) * 1024;
  static constexpr int kChunkBytes = X::kBytes + kGroups * (kPieceBytes + kPieceScales * 2);
  // As many that four stages have room, and two for each way.
  static constexpr int kMostOfStage = kRoom / kChunkBytes / (kWays > 2 ? 2 * kWays : 4);
  static constexpr int kChunks = kMostOfStage >= 4 ? 4 : kMostOfStage >= 2 ? 2 : 1;
  static constexpr int kNumbers = kChunks * X::kBytes, kGroupNumbers = kChunks * kPieceBytes;  // where numbers begin
  static constexpr int kRowScales = kNumbers + kGroups * kGroupNumbers, kGroupScales = kChunks * kPieceScales * 2;
  static constexpr int kStage = kRowScales + kGroups * kGroupScales;
  static constexpr int kRows = kGroups * kGroupRows, kSumStride = kRows + 4;  // from column to column: other banks
  static constexpr int kSums = kWays * kColumns * kSumStride * 4;
  // A multiple of kWays: the stages in one place of the ring belong to one way. So who waits for a phase of a place has
  // waited for the phase before, and cannot take one for the other.
  static constexpr int kStages = (kRoom / kStage < 16 ? kRoom / kStage : 16) / kWays * kWays;
  static constexpr int kBytes = kStages * kStage > kSums ? kStages* kStage : kSums;
  // Where consumers need more registers than an even share, four producer warps give theirs away (setmaxnreg). A
  // quarter of a multiprocessor has 512 registers for each lane, and as many warps of a block as the block has
  // warpgroups.
  static constexpr int kConsumerGroups = kGroups * kWays, kConsumers = 128 * kConsumerGroups;
  static constexpr bool kMoreRegisters = kColumns >= 32;
  static constexpr int kThreads = kConsumers + (kMoreRegisters ? 128 : 96);
  static constexpr int kEvenShare = 512 / ((kConsumerGroups + 1) * kBlocksPerSm) / 8 * 8, kFewRegisters = 32;
  static constexpr int kManyRegisters = (kEvenShare * (kConsumerGroups + 1) - kFewRegisters) / kConsumerGroups / 8 * 8;
  static_assert(kStages >= 2 * kWays && kBytes <= kRoom && kStage % 128 == 0, "a ring of copies");
};

// Code for sm_90 lacks wgmma, which belongs to sm_90a: there a kernel takes no more than a warp, and so the host knows.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(__SIMT__)
constexpr bool kHasWgmma = true;
#else
constexpr bool kHasWgmma = false;
#endif

template <class B, class Y>
struct ManyProblem {
  Packed w;
  const unsigned char* x;  // as convert_x_kernel leaves it
  const B* bias;           // or nullptr
  Y* y;
  int64_t y_stride, m, n;
};

// Up to four neighbouring rows of a column. `aligned`: there are four, and a vector store can have them.
template <class Y>
__device__ void store_four(Y* to, const float (&four)[4], int rows, bool aligned) {
  alignas(16) Y values[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) values[i] = from_float<Y>(four[i]);
  using Vector = std::conditional_t<sizeof(Y) == 4, uint4, uint2>;
  if (aligned) {
    __stwb(reinterpret_cast<Vector*>(to), *reinterpret_cast<const Vector*>(values));  // nvcc divides `*to = ` into four
  } else {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (i < rows) to[i] = values[i];
  }
}

#if __CUDA_ARCH__ >= 900

// What a block has to do with k and the rows: stages of kChunks chunks from first_chunk on, and groups from first_group
// on.
template <class S>
struct ManyShare {
  int chunks, first_chunk, stages;
  int64_t first_group;

  __device__ explicit ManyShare(const Packed& w)
      : chunks(static_cast<int>(w.chunks)), first_group(int64_t{blockIdx.z} * S::kGroups) {
    const int all = (chunks + S::kChunks - 1) / S::kChunks;
    const auto first_of = [&](unsigned part) { return static_cast<int>(int64_t{all} * part / gridDim.x); };
    first_chunk = first_of(blockIdx.x) * S::kChunks;
    stages = first_of(blockIdx.x + 1) - first_of(blockIdx.x);
  }
};

// Stages in shared memory, and for each a barrier that says that its copies are there, and one that all have read it.
template <class S>
struct Ring {
  unsigned char* stages;
  Barrier *full, *empty;

  __device__ void init_barriers() const {
    for (int i = 0; i < S::kStages; ++i) init(&full[i], 3), init(&empty[i], 128 * S::kGroups);
  }
};

// One thread for each of the three: numbers, scales and x. A thread alone waits for each of its instructions, so there
// are few from one stage to the next.
template <class S>
struct Producer {
  const ManyShare<S> share;
  const Ring<S> ring;

  // copy(i, stage, barrier) starts the copies of a stage, once its place in the ring is free.
  template <class Copy>
  __device__ void produce(const Copy& copy) const {
    uint32_t parity = 1;
#pragma unroll 1
    for (int i = 0, slot = 0; i < share.stages; ++i) {
      if (i >= S::kStages) wait_for(ring.empty[slot], parity);
      copy(i, ring.stages + slot * S::kStage, ring.full[slot]);
      if (++slot == S::kStages) slot = 0, parity ^= 1;
    }
  }
  __device__ static void announce(Barrier& barrier, int bytes) {
    static_cast<void>(cuda::device::barrier_arrive_tx(barrier, 1, bytes));
  }
  __device__ static void start(unsigned char* to, const void* from, int bytes, Barrier& barrier) {
    cuda::device::memcpy_async_tx(reinterpret_cast<uint4*>(to), static_cast<const uint4*>(from),
                                  cuda::aligned_size_t<16>(bytes), barrier);
  }
  // Numbers or scales: `bytes` of each chunk, which begin at `place` in a stage.
  __device__ void produce_weights(const Packed& w, const void* all, int bytes, int place) const {
    const int chunks = share.chunks, first_chunk = share.first_chunk;
    const auto* from = static_cast<const unsigned char*>(all) + (share.first_group * chunks + first_chunk) * bytes;
    const int last_group = static_cast<int>(min(w.groups - share.first_group, int64_t{S::kGroups})) - 1;
    const auto from_of = [&](int group) {  // groups past the end bring the last one again
      return from + int64_t{min(group, last_group)} * chunks * bytes;
    };
    produce([&](int i, unsigned char* stage, Barrier& barrier) {
      const int there = chunks - first_chunk - i * S::kChunks;
      announce(barrier, S::kGroups * S::kChunks * bytes);
      if (there >= S::kChunks) {
#pragma unroll
        for (int group = 0; group < S::kGroups; ++group)
          start(stage + place + group * S::kChunks * bytes, from_of(group), S::kChunks * bytes, barrier);
      } else {  // past the end of k, where x is zero, comes the last chunk again
#pragma unroll 1
        for (int j = 0; j < S::kGroups * S::kChunks; ++j)
          start(stage + place + j * bytes, from_of(j / S::kChunks) + min(j % S::kChunks, there - 1) * bytes, bytes,
                barrier);
      }
      from += S::kChunks * bytes;
    });
  }
  __device__ void produce_x(const unsigned char* x) const {
    constexpr int kBytes = S::kChunks * S::X::kBytes;
    const unsigned char* from = x + (blockIdx.y * padded_chunks(share.chunks) + share.first_chunk) * S::X::kBytes;
    wait_for_previous_kernel();  // convert_x_kernel: it writes x, and every kernel before it has ended
    let_next_kernel_start();     // one thread is enough for its block
    produce([&](int, unsigned char* stage, Barrier& barrier) {
      announce(barrier, kBytes);
      start(stage, from, kBytes, barrier);
      from += kBytes;
    });
  }
};

// What a lane reads of a stage.
template <class S>
struct Stage {
  const unsigned char* data;
  const uint4* numbers;
  const uint2* scales;
  Panels<S::kColumns> panels;

  // place: the thread's, of the 128 of a group of rows.
  __device__ Stage(const unsigned char* stage, int group, int place)
      : data(stage),
        numbers(reinterpret_cast<const uint4*>(stage + S::kNumbers + group * S::kGroupNumbers) + place),
        scales(reinterpret_cast<const uint2*>(stage + S::kRowScales + group * S::kGroupScales) + place / 4),
        panels(stage) {}
  __device__ Panels<S::kColumns> panels_of(int c, int b) const {
    return panels + (c * S::X::kBytes / 16 + b * S::X::kNumbers / kChunkBlocks);
  }
};

// Multiplies a stage whose scales are rounded with the numbers. release() is called where the stage before has been
// read, unless there was none.
template <class S, class Release>
__device__ void multiply_rounded(float (&sums)[S::kColumns / 2], const Stage<S>& stage, bool has_before, bool never,
                                 int warp, Release release) {
  uint4 q = stage.numbers[0];  // of a chunk, until the next one's take their place
  uint2 d = stage.scales[0];
  uint32_t a[2][2][4];  // of a block of k and of the next: one is being made while the other is multiplied
#pragma unroll
  for (int c = 0; c < S::kChunks; ++c) {
    const uint4 next_q = c + 1 < S::kChunks ? stage.numbers[(c + 1) * kPieceLanes] : q;
    const uint2 next_d = c + 1 < S::kChunks ? stage.scales[(c + 1) * kPieceScaleLanes] : d;
#pragma unroll
    for (int b = 0; b < kChunkBlocks; ++b) {
      half_fragments_of({b == 0 ? q.x : q.z, b == 0 ? q.y : q.w}, b == 0 ? d.x : d.y, a[b]);
      begin_wgmma();
      wgmma<S::kColumns>(sums, a[b][0], stage.panels_of(c, b), true);
      wgmma<S::kColumns>(sums, a[b][1], stage.panels_of(c, b) + 2 * S::kColumns, true);
      commit_wgmma();
      wait_for_wgmma<1>();  // the block before has been multiplied, and its a[] may be written
      // Without a branch after each wait, most of them never taken, ptxas would let each wgmma wait for itself.
      // __syncwarp() and a condition that always holds keep it from replacing the branch.
      if (c == 0 && b == 0 ? has_before : never) {
        __syncwarp();
        if (warp < 32) release();
      }
    }
    q = next_q, d = next_d;
  }
}

// Multiplies a stage with exact scales. The lane is computed here: as an argument it costs the widest shape a register
// too many, and one number goes to memory and back in every stage.
template <class S>
__device__ void multiply_exact(float (&sums)[S::kColumns / 2], const Stage<S>& stage) {
  constexpr int kColumns = S::kColumns;
  const int lane = threadIdx.x % 32;
  uint4 q = stage.numbers[0];  // of a chunk, until the next one's take their place
  uint2 d = stage.scales[0];
#pragma unroll
  for (int c = 0; c < S::kChunks; ++c) {
    const uint4 next_q = c + 1 < S::kChunks ? stage.numbers[(c + 1) * kPieceLanes] : q;
    const uint2 next_d = c + 1 < S::kChunks ? stage.scales[(c + 1) * kPieceScaleLanes] : d;
#pragma unroll
    for (int b = 0; b < kChunkBlocks; ++b) {
      float4 of_x[kColumns / 16];  // scales: read before wgmma begins, which would hold the reads up
      const auto* from = reinterpret_cast<const float4*>(stage.data + c * S::X::kBytes + S::X::kNumbers * 16) +
                         b * kColumns / 4 + lane % 4;
#pragma unroll
      for (int j = 0; j < kColumns / 16; ++j) of_x[j] = from[4 * j];
      int products[kColumns / 2];
      uint32_t a[4];
      byte_fragments_of({b == 0 ? q.x : q.z, b == 0 ? q.y : q.w}, a);
      begin_wgmma();
      wgmma<kColumns>(products, a, stage.panels_of(c, b), false);
      commit_wgmma();
      wait_for_wgmma<0>();
      pin(products);
      const float2 of_rows = __half22float2(as_half2(b == 0 ? d.x : d.y));
#pragma unroll
      for (int j = 0; j < kColumns / 16; ++j) {
        const float of_columns[4] = {of_x[j].x, of_x[j].y, of_x[j].z, of_x[j].w};
#pragma unroll
        for (int i = 0; i < 8; ++i)
          sums[8 * j + i] += (i / 2 % 2 == 0 ? of_rows.x : of_rows.y) * of_columns[i / 4 * 2 + i % 2] *
                             static_cast<float>(products[8 * j + i]);
      }
    }
    q = next_q, d = next_d;
  }
}

// The work of a consumer: its stages, which are every kWays-th, multiplied and added up; then, once all have read the
// ring, its sums take the ring's place.
template <class S>
__device__ void consume(const ManyShare<S>& share, const Ring<S>& ring, Barrier& all_have_read, int warp) {
  const int thread = threadIdx.x, lane = thread % 32, place = thread % 128;
  const int group = warp / 4 % S::kGroups, way = warp / 4 / S::kGroups;
  float sums[S::kColumns / 2];
  int slot = way, before = 0;
  uint32_t parity = 0;
  const auto release = [&](int i) { static_cast<void>(ring.empty[i].arrive()); };
#pragma unroll
  for (float& sum : sums) sum = 0.0f;

  for (int i = way; i < share.stages; i += S::kWays) {
    wait_for(ring.full[slot], parity);
    const Stage<S> stage(ring.stages + slot * S::kStage, group, place);
    if constexpr (S::kScales == Scales::rounded_to_half) {
      multiply_rounded<S>(sums, stage, i > way, share.stages < 0, warp, [&] { release(before); });
    } else {
      multiply_exact<S>(sums, stage);
      // An arrival does not wait until what this thread has loaded is in its registers, and the next copy could
      // overtake the scales.
      cuda::device::experimental::fence_proxy_async_shared_cta();
      release(slot);
    }
    before = slot;
    if ((slot += S::kWays) == S::kStages + way) slot = way, parity ^= 1;
  }
  wait_for_wgmma<0>();
  pin(sums);

  static_cast<void>(all_have_read.arrive());
  wait_for(all_have_read, 0);
  float* to =
      reinterpret_cast<float*>(ring.stages) + way * S::kColumns * S::kSumStride + group * kGroupRows + warp % 4 * 16;
#pragma unroll
  for (int i = 0; i < S::kColumns / 2; ++i)
    to[(i / 4 * 8 + lane % 4 * 2 + i % 2) * S::kSumStride + i / 2 % 2 * 8 + lane / 4] = sums[i];
}

// The sums of all ways and of all blocks of the cluster become results. A thread has four neighbouring rows, and of the
// columns of the block's part every kAtOnce-th.
template <class S, class B, class Y>
__device__ void store_sums(const ManyProblem<B, Y>& p, int64_t first_group, const unsigned char* ring,
                           const cooperative_groups::cluster_group& cluster) {
  constexpr int kColumns = S::kColumns, kFours = S::kRows / 4, kAtOnce = S::kThreads / kFours;
  const int thread = threadIdx.x, parts = static_cast<int>(gridDim.x), part = static_cast<int>(blockIdx.x);
  const int64_t row = first_group * kGroupRows + thread % kFours * 4;
  const int rows = thread < kAtOnce * kFours ? static_cast<int>(min(p.m - row, int64_t{4})) : 0;
  const bool aligned = rows == 4 && p.y_stride % 4 == 0 && reinterpret_cast<uintptr_t>(p.y) % (4 * sizeof(Y)) == 0;
  float bias[4] = {};
#pragma unroll
  for (int i = 0; i < 4; ++i)
    if (i < rows && p.bias != nullptr) bias[i] = to_float(p.bias[row + i]);
  const int64_t first_column = int64_t{blockIdx.y} * kColumns;
  const int end = static_cast<int>(min(int64_t{kColumns * (part + 1) / parts}, p.n - first_column));
  for (int column = kColumns * part / parts + thread / kFours; column < end && rows > 0; column += kAtOnce) {
    const auto* place = reinterpret_cast<const float4*>(ring) + column * (S::kSumStride / 4) + thread % kFours;
    float four[4] = {};
    for (int other = 0; other < parts; ++other) {
      const float4* sums = other == part ? place : cluster.map_shared_rank(place, other);
#pragma unroll
      for (int way = 0; way < S::kWays; ++way) {
        const float4 of_way = sums[way * kColumns * (S::kSumStride / 4)];
        four[0] += of_way.x, four[1] += of_way.y, four[2] += of_way.z, four[3] += of_way.w;
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) four[i] += bias[i];
    store_four(p.y + (first_column + column) * p.y_stride + row, four, rows, aligned);
  }
}

#endif

// gridDim.x blocks are a cluster and share k.
template <class S, class B, class Y>
__global__ void __launch_bounds__(kHasWgmma ? S::kThreads : 32, S::kBlocksPerSm)
    many_columns_kernel(ManyProblem<B, Y> p) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char ring_memory[];
  __shared__ uint64_t barriers[2][S::kStages], last_barrier;
  const Ring<S> ring = {ring_memory, reinterpret_cast<Barrier*>(barriers[0]), reinterpret_cast<Barrier*>(barriers[1])};
  auto& all_have_read = reinterpret_cast<Barrier&>(last_barrier);
  const int thread = threadIdx.x, warp = __shfl_sync(0xffffffffu, thread / 32, 0);
  const ManyShare<S> share(p.w);
  const auto cluster = cooperative_groups::this_cluster();

  if (thread == 0) {
    ring.init_barriers();
    init(&all_have_read, S::kConsumers);
    show_barriers_to_copies();
  }
  __syncthreads();

  if (thread >= S::kConsumers) {
    if constexpr (S::kMoreRegisters) set_registers<false, S::kFewRegisters>();
    const Producer<S> producer = {share, ring};
    const int number = warp - S::kConsumers / 32;
    if (number == 0 && is_elected()) {
      producer.produce_weights(p.w, p.w.numbers, kPieceBytes, S::kNumbers);
    } else if (number == 1 && is_elected()) {
      producer.produce_weights(p.w, p.w.scales, 2 * kPieceScales, S::kRowScales);
    } else if (number == 2 && is_elected()) {
      producer.produce_x(p.x);
    }
    // Taken back any earlier, they could be missing when a consumer asks for its own, and neither warpgroup would go
    // on.
    __syncwarp();
    wait_for(all_have_read, 0);
    if constexpr (S::kMoreRegisters) set_registers<true, S::kEvenShare>();
  } else {
    if constexpr (S::kMoreRegisters) set_registers<true, S::kManyRegisters>();
    consume(share, ring, all_have_read, warp);
    if constexpr (S::kMoreRegisters) set_registers<false, S::kEvenShare>();
  }

  // All threads are here, with as many registers as they began with. cluster.sync() would wait for memory, too.
  const int parts = static_cast<int>(gridDim.x);
  if (parts > 1)
    cluster.sync();
  else
    __syncthreads();
  store_sums<S>(p, share.first_group, ring.stages, cluster);
  // A block's shared memory lives until all have read it. They have; so nothing need become visible to others first.
  if (parts > 1) {
    __cluster_barrier_arrive_relaxed();
    __cluster_barrier_wait();
  }
#endif
}

}  // namespace detail
}  // namespace q4_gemm
