// What the oracles of q4_gemm and q4_product share: forms of weights, and products of blocks.
#pragma once
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/operators/q4_gemm.h"
#include "common/parallel.h"
#include "common/random.h"
#include "common/tensor.h"

namespace ladder::q4_gemm {
enum Place { kY, kWeights, kX, kScratch };  // the operator's tensors
}

namespace ladder::q4 {

// Whole numbers and scales apart: rows of k whole numbers, and k / 32 scales a row.
struct Row {
  const int8_t* numbers;
  const float* scales;
};
class Rows {
 public:
  Rows(int64_t count, int64_t k) : blocks_(k / kBlock), numbers_(count * blocks_ * kBlock), scales_(count * blocks_) {}

  // block(i, numbers) writes the 32 whole numbers of block i and returns its scale's bits.
  template <class Block>
  void fill(Block block) {
    parallel_for(static_cast<int64_t>(scales_.size()), 1 << 11, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        scales_[i] = static_cast<float>(Float16::value(block(i, numbers_.data() + i * kBlock)));
    });
  }
  Row operator[](int64_t row) const {
    return {numbers_.data() + row * blocks_ * kBlock, scales_.data() + row * blocks_};
  }

 private:
  int64_t blocks_;
  std::vector<int8_t> numbers_;
  std::vector<float> scales_;
};

// The sum of the products of two rows, and of their magnitudes. Each sum of a block's products is a whole number below
// 2^24, and each product of two scales has 22 bits: both are exact in float32. In float64 all of it is, but for the
// last places of the sum over the blocks.
struct Element {
  double sum, magnitudes;
};
inline Element product(const Row& w, const Row& x, int64_t blocks) {
  Element element = {0.0, 0.0};
  for (int64_t b = 0; b < blocks; ++b) {
    int dot = 0, magnitude = 0;
    for (int j = 0; j < kBlock; ++j) {
      const int term = w.numbers[b * kBlock + j] * x.numbers[b * kBlock + j];
      dot += term;
      magnitude += std::abs(term);
    }
    const double scale = static_cast<double>(w.scales[b]) * static_cast<double>(x.scales[b]);
    element.sum += scale * dot;
    element.magnitudes += std::abs(scale) * magnitude;
  }
  return element;
}

// Where the bits of block b of a row are in memory, for each form of weights.
template <class W>
struct Form;

template <>
struct Form<const block_q4_0*> {
  int64_t rows, blocks;

  const block_q4_0* of(const void* from) const { return static_cast<const block_q4_0*>(from); }
  void store(void* to, int64_t row, int64_t b, const block_q4_0& block) const {
    static_cast<block_q4_0*>(to)[row * blocks + b] = block;
  }
  block_q4_0 load(const void* from, int64_t row, int64_t b) const { return of(from)[row * blocks + b]; }
};

template <>
struct Form<Repacked> {
  int64_t rows, blocks;

  int64_t words() const { return (18 * rows * blocks + 3) / 4; }
  Repacked of(const void* from) const {
    const auto* qs = static_cast<const uint4*>(from);
    return {qs, reinterpret_cast<const uint16_t*>(qs + rows * blocks)};
  }
  void store(void* to, int64_t row, int64_t b, const block_q4_0& block) const {
    const Repacked form = of(to);
    std::memcpy(const_cast<uint4*>(form.qs) + row * blocks + b, block.qs, 16);
    std::memcpy(const_cast<uint16_t*>(form.d) + row * blocks + b, &block.d, 2);
  }
  block_q4_0 load(const void* from, int64_t row, int64_t b) const {
    block_q4_0 block;
    std::memcpy(block.qs, of(from).qs + row * blocks + b, 16);
    std::memcpy(&block.d, of(from).d + row * blocks + b, 2);
    return block;
  }
};

template <>
struct Form<Fragments> {
  int64_t rows, blocks;

  int64_t groups() const { return (rows + 63) / 64; }
  int64_t chunks() const { return (blocks + 1) / 2; }
  int64_t words() const { return groups() * chunks() * (128 * 4 + 32 * 2); }
  Fragments of(const void* from) const {
    const auto* numbers = static_cast<const uint4*>(from);
    return {numbers, reinterpret_cast<const uint2*>(numbers + groups() * chunks() * 128), groups(), chunks()};
  }
  void store(void* to, int64_t row, int64_t b, const block_q4_0& block) const {
    for (int t = 0; t < 4; ++t) {
      uint32_t word = 0;
      for (int i = 0; i < 8; ++i)
        word |= static_cast<uint32_t>(weight_of(block, 8 * t + i) + 8) << (i % 4 * 8 + i / 4 * 4);
      std::memcpy(static_cast<char*>(to) + word_of(row, b, t), &word, 4);
    }
    std::memcpy(static_cast<char*>(to) + scale_of(row, b), &block.d, 2);
  }
  block_q4_0 load(const void* from, int64_t row, int64_t b) const {
    block_q4_0 block = {};
    for (int j = 0; j < kBlock; ++j) {
      uint32_t word;
      std::memcpy(&word, static_cast<const char*>(from) + word_of(row, b, j / 8), 4);
      const uint32_t q = word >> (j % 4 * 8 + j % 8 / 4 * 4) & 15;
      block.qs[j % 16] |= static_cast<uint8_t>(j < 16 ? q : q << 4);
    }
    std::memcpy(&block.d, static_cast<const char*>(from) + scale_of(row, b), 2);
    return block;
  }

 private:
  // Of the first lane of a g, and of its four scales: in units of 8 lanes and of 1 g.
  int64_t eighth(int64_t row, int64_t b) const {
    const int64_t piece = row / 64 * chunks() + b / 2;
    return (piece * 4 + row % 64 / 16) * 8 + row % 8;
  }
  int64_t word_of(int64_t row, int64_t b, int t) const {
    return (eighth(row, b) * 4 + t) * 16 + (b % 2 * 2 + row % 16 / 8) * 4;
  }
  int64_t scale_of(int64_t row, int64_t b) const {
    return groups() * chunks() * 128 * 16 + eighth(row, b) * 8 + (b % 2 * 2 + row % 16 / 8) * 2;
  }
};

// Any 4 bits, and a scale of either sign, as a quantizer writes it. Blocks differ in scale by a factor of 4, and one of
// 64 has the scale 0.
inline float drawn_scale(uint32_t hash) {
  return hash % 64 == 0 ? 0.0f : (0.5f + static_cast<float>(hash >> 8) * 0x1.8p-24f) * 0x1p-6f;
}
inline block_q4_0 drawn_weights(uint64_t key, int64_t i) {
  const uint32_t hash = hash32(key, i);
  block_q4_0 block;
  block.d = Float16::from(hash >> 6 & 1 ? drawn_scale(hash) : -drawn_scale(hash));
  for (int word = 0; word < 4; ++word) {
    const uint32_t nibbles = hash32(key ^ 0x5bd1e995u, 4 * i + word);
    std::memcpy(block.qs + 4 * word, &nibbles, 4);
  }
  return block;
}
template <class W>
void draw_weights(const Form<W>& form, uint64_t key, void* to) {
  if constexpr (!std::is_same_v<W, const block_q4_0*>)
    std::memset(to, 0, static_cast<size_t>(4 * form.words()));  // what belongs to no block
  parallel_for(form.rows * form.blocks, 1 << 11, [=](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) form.store(to, i / form.blocks, i % form.blocks, drawn_weights(key, i));
  });
}

// A block_q4_0 as nine numbers of 2 bytes, which a kernel may expect aligned to 2 bytes and no more.
inline Tensor weights_tensor(const Form<const block_q4_0*>& form) {
  return {"weights", Type::float16, Role::input, form.rows, 9 * form.blocks};
}
template <class W>
Tensor weights_tensor(const Form<W>& form) {
  return vector_tensor("weights", Type::uint32, Role::input, form.words());
}

// As whole numbers and scales.
template <class W>
Rows rows_of(const Form<W>& form, const void* from) {
  Rows rows(form.rows, form.blocks * kBlock);
  rows.fill([=](int64_t i, int8_t* numbers) {
    const block_q4_0 block = form.load(from, i / form.blocks, i % form.blocks);
    for (int j = 0; j < kBlock; ++j) numbers[j] = static_cast<int8_t>(weight_of(block, j));
    return block.d;
  });
  return rows;
}

}  // namespace ladder::q4
