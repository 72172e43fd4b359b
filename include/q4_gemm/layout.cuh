// How weights lie in memory after `repack`: one form for every number of columns.
//
// The matrix is padded with zeros to groups of 64 rows and chunks of 64 weights of a row (two blocks of q4_0). The
// piece of a group that belongs to one chunk is 2 KB of 4-bit numbers; the chunks of a group follow each other along k,
// then comes the next group. A piece is four tiles of 16 rows, one after the other. A tile is what one warp gives to
// the tensor cores: with g = lane / 4 and t = lane % 4, lane 4 g + t owns 16 bytes of it, four words:
//
//   words[2 b + h]     of row g + 8 h of the tile, the numbers 8 t to 8 t + 7 of block b of the chunk (b and h: 0 or 1)
//   byte i of a word   its low nibble is number 8 t + i, its high nibble number 8 t + 4 + i (i: 0 to 3)
//
// A nibble q stands for d · (q - 8), as in q4_0. Two ways to take a word apart:
//
//   int8:    word & 0x0f0f0f0f, word >> 4 & 0x0f0f0f0f    numbers 0 to 3 and 4 to 7 of the eight, which are the words
//            a[h] and a[2 + h] of mma.m16n8k32 if lane t brings numbers 8 t to 8 t + 7 of x, in their order
//   float16: word >> 4 i & 0x000f000f, for i = 0, 1, 2, 3    numbers (0, 2), (4, 6), (1, 3), (5, 7) of the eight
//
// After the numbers of all groups come the scales d, as float16, in the same order: 256 bytes for each chunk of a
// group, in it the tiles, then g, then scales[2 b + h] of row g + 8 h and block b. The scales of what was padded are
// zero.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "../cuda_bits.cuh"
#include "../memory_overlap.cuh"

namespace q4_gemm {

constexpr int kBlock = 32;       // numbers that share a scale
constexpr int kBlockBytes = 18;  // of q4_0: a float16, then 16 bytes; number i is the low nibble of byte i % 16 if
                                 // i < 16, else the high one
constexpr int kGroupRows = 64, kTileRows = 16, kChunk = 64;

namespace detail {

using namespace cuda_bits;

constexpr int kGroupTiles = kGroupRows / kTileRows, kChunkBlocks = kChunk / kBlock;
constexpr int kPieceBytes = kGroupRows * kChunk / 2;     // the numbers of a chunk of a group
constexpr int kPieceScales = kGroupRows * kChunkBlocks;  // and how many scales it has
constexpr int kPieceLanes = kGroupTiles * 32;            // 16 bytes each
constexpr int kPieceScaleLanes = kPieceLanes / 4;        // 8 bytes each: the four lanes of a g share them
static_assert(kPieceLanes * 16 == kPieceBytes && kPieceScaleLanes * 4 == kPieceScales, "no gaps");

constexpr int64_t divided_up(int64_t number, int64_t by) { return number / by + (number % by > 0); }
constexpr int64_t groups_of(int64_t m) { return divided_up(m, kGroupRows); }
constexpr int64_t chunks_of(int64_t k) { return divided_up(k, kChunk); }

// Of a · b pieces. 0 if there are none; SIZE_MAX if it does not fit 63 bits.
constexpr size_t bytes_of(int64_t a, int64_t b, int64_t piece) {
  if (a < 1 || b < 1) return 0;
  return a > INT64_MAX / piece / b ? SIZE_MAX : static_cast<size_t>(a * b * piece);
}

// Where the parts of repacked weights are: piece `group * chunks + chunk` begins at numbers + piece · kPieceLanes, and
// its scales at scales + piece · kPieceScaleLanes.
struct Packed {
  const uint4* numbers;
  const uint2* scales;
  int64_t groups, chunks;  // of rows, and of k

  Packed(const void* packed, int64_t m, int64_t k)
      : numbers(static_cast<const uint4*>(packed)),
        scales(reinterpret_cast<const uint2*>(numbers + groups_of(m) * chunks_of(k) * kPieceLanes)),
        groups(groups_of(m)),
        chunks(chunks_of(k)) {}
};

// A thread writes the 16 bytes of one lane of a tile, and one in four the scales that these four share. A template, so
// that several files of a program may have it. Within a struct, a pointer may be one of the host on the CPU device, as
// those of every other kernel may.
template <class Byte>
struct StoredBlocks {
  const Byte* data;
};
template <class Byte>
__global__ void __launch_bounds__(256) repack_kernel(StoredBlocks<Byte> blocks, Packed to, int64_t m, int64_t k) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= to.groups * to.chunks * kPieceLanes) return;
  const int lane = static_cast<int>(i % 32), g = lane / 4, t = lane % 4;
  const int64_t piece = i / kPieceLanes, row_blocks = k / kBlock;
  const int64_t first_row = piece / to.chunks * kGroupRows + i / 32 % kGroupTiles * kTileRows + g;
  const int64_t first_block = piece % to.chunks * kChunkBlocks;
  unsigned words[4] = {}, scales[4] = {};
  for (int w = 0; w < 4; ++w) {
    const int64_t row = first_row + w % 2 * 8, block = first_block + w / 2;
    if (row >= m || block >= row_blocks) continue;
    const Byte* from = blocks.data + (row * row_blocks + block) * kBlockBytes;
    scales[w] = from[0] | from[1] << 8;
    const Byte* eight = from + 2 + t % 2 * 8;  // bytes that hold numbers 8 t to 8 t + 7 in one of their halves
    for (int j = 0; j < 4; ++j) {
      const unsigned low = eight[j] >> t / 2 * 4 & 15, high = eight[j + 4] >> t / 2 * 4 & 15;
      words[w] |= (low | high << 4) << 8 * j;
    }
  }
  const_cast<uint4*>(to.numbers)[i] = make_uint4(words[0], words[1], words[2], words[3]);
  if (t == 0)
    const_cast<uint2*>(to.scales)[i / 4] = make_uint2(scales[0] | scales[1] << 16, scales[2] | scales[3] << 16);
}

}  // namespace detail

// The bytes of m rows of k weights after `repack`: 4.5 bits a weight, and the padding. 0 if m or k is less than 1;
// SIZE_MAX, which no allocation has, if the bytes do not fit 63 bits.
constexpr size_t packed_size(int64_t m, int64_t k) {
  return detail::bytes_of(detail::groups_of(m), detail::chunks_of(k), detail::kPieceBytes + 2 * detail::kPieceScales);
}

namespace detail {

// --- What is refused -------------------------------------------------------------------------------------------------

using memory_overlap::Region;

// Of two tensors, of which one is written: whether they overlap, and are not the same one.
inline bool collide(const Region& a, const Region& b, bool same_type) {
  return a.overlaps(b) && !(same_type && a.begin == b.begin && a.outer_stride == b.outer_stride);
}

inline bool is_aligned(const void* data, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(data) % bytes == 0; }

constexpr int64_t kMostRows = int64_t{1} << 31, kMostNumbers = int64_t{1} << 30;  // of a row or a column
constexpr int64_t kMostWeights = int64_t{1} << 43;  // a grid has threads for almost twice as many

inline const char* refusal_of_rows(int64_t m) {
  if (m < 0) return "m is negative";
  return m > kMostRows ? "m is more than 2^31" : nullptr;
}
inline const char* refusal_of_k(int64_t k) {
  if (k < kBlock) return "k is less than 32, the numbers of a block";
  if (k % kBlock != 0) return "k is not a multiple of 32, the numbers of a block";
  return k > kMostNumbers ? "k is more than 2^30" : nullptr;
}

}  // namespace detail

// Why a call of repack with these arguments is refused: one sentence. nullptr if it is not refused.
inline const char* explain_repack(const void* blocks, const void* packed, int64_t m, int64_t k) {
  if (const char* reason = detail::refusal_of_rows(m)) return reason;
  if (const char* reason = detail::refusal_of_k(k)) return reason;
  if (m == 0) return nullptr;
  if (m > detail::kMostWeights / k) return "m · k is more than 2^43";
  if (blocks == nullptr) return "blocks is nullptr";
  if (packed == nullptr) return "packed is nullptr";
  if (!detail::is_aligned(packed, 16)) return "packed is not aligned to 16 bytes";
  const detail::Region to(packed, packed_size(m, k)), from(blocks, detail::bytes_of(m, k / kBlock, kBlockBytes));
  return to.overlaps(from) ? "packed overlaps blocks" : nullptr;
}

// Repacks m rows of k / 32 blocks of q4_0, as llama.cpp stores them, into packed_size(m, k) bytes of device memory that
// are aligned to 16 bytes. Blocks may have any alignment. Once for a matrix, when it is loaded.
inline cudaError_t repack(const void* blocks, void* packed, int64_t m, int64_t k, cudaStream_t stream = nullptr) {
  if (explain_repack(blocks, packed, m, k) != nullptr) return cudaErrorInvalidValue;
  if (m == 0) return cudaSuccess;
  const detail::Packed to(packed, m, k);
  const int64_t grid = detail::divided_up(to.groups * to.chunks * detail::kPieceLanes, 256);
  return cuda_bits::launch(stream, {dim3(static_cast<unsigned>(grid)), dim3(256)}, detail::repack_kernel<unsigned char>,
                           detail::StoredBlocks<unsigned char>{static_cast<const unsigned char*>(blocks)}, to, m, k);
}

}  // namespace q4_gemm
