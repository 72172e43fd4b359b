// y = W · x with W in q4_0 and x in q8_1 (common/q4_blocks.h): m × k weights, n columns of k activations each.
//   y[column][row] = sum over the blocks b of a row of d_w[b] · d_x[b] · sum over i of (q_w[b][i] - 8) · q_x[b][i].
#pragma once
#include <cuda_runtime_api.h>

#include "common/q4_blocks.h"
#include "common/stage.h"

namespace ladder {

// Weights in two arrays that hold the bits of block_q4_0: qs, 16 bytes a block and aligned to 16, and after the last of
// them d, 2 bytes a block.
struct Repacked {
  const uint4* qs;
  const uint16_t* d;
};

// Weights as the tensor cores take them, padded with zeros to groups of 64 rows and chunks of 64 k. A piece, which is a
// chunk of a group, has 128 times 16 bytes of numbers, and in another array 32 times four scales:
//   numbers[piece · 128 + 32 w + 4 g + t]   word 2 b + h: numbers 8 t to 8 t + 7 of block b of row 16 w + g + 8 h
//   scales[piece · 32 + 8 w + g]            float16 2 b + h: the scale of that block
// with w and t from 0 to 3, g from 0 to 7, b and h from 0 to 1. Piece `group · chunks + chunk` begins there. Byte i of
// a word is number i of its eight, in the low nibble, and number 4 + i in the high one.
struct Fragments {
  const uint4* numbers;
  const uint2* scales;
  int64_t groups, chunks;
};

// W is const block_q4_0*, weights as llama.cpp stores them, Repacked or Fragments.
template <class W>
struct Q4Gemm {
  // w: m rows of k / 32 blocks. x: n columns of k / 32 blocks, each column contiguous, aligned to 4 bytes. y: n columns
  // of m floats. scratch: kSplits · min(n, kSplitColumns) · m floats, whose contents before the launch are unknown;
  // with Fragments kScratchOfX floats for each chunk of 64 k and each column, of which there are a multiple of 64.
  using Launch = void (*)(W w, const block_q8_1* x, float* y, float* scratch, int64_t m, int64_t n, int64_t k,
                          cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kSplits = 8, kSplitColumns = 16;
  static constexpr int64_t kScratchOfX = 34;  // 64 float16 and 2 float32

  // What no stage accepts.
  static const char* refuses(const Shape& shape) {
    if (shape[2] % kBlock != 0) return "a block of q4_0 is 32 weights of a row; give a k that is a multiple of 32";
    if (shape[1] > INT32_MAX) return "more columns than a grid has blocks for; give a smaller n";
    if (shape[0] > 16 * 65535) return "more rows than a grid has blocks for, 16 rows each; give a smaller m";
    return nullptr;
  }
};

using Q4GemmBlocks = Q4Gemm<const block_q4_0*>;
using Q4GemmRepacked = Q4Gemm<Repacked>;
using Q4GemmFragments = Q4Gemm<Fragments>;

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <cstring>
#include <type_traits>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"

namespace ladder {
namespace q4_gemm {

enum Place { kY, kWeights, kX, kScratch };

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

// Each sum of a block's products is a whole number below 2^24, and each product of two scales has 22 bits: both are
// exact in float32. In float64 all of it is, but for the last places of the sum over the blocks.
class Answer : public Oracle {
 public:
  // All elements at once, on all cores: every stage of a ladder is compared with the same ones.
  Answer(const Rows& weights, const block_q8_1* x, int64_t m, int64_t n, int64_t k)
      : blocks_(k / kBlock), elements_(static_cast<size_t>(m * n)) {
    Rows columns(n, k);
    columns.fill([=](int64_t i, int8_t* numbers) {
      std::memcpy(numbers, x[i].qs, kBlock);
      return x[i].d;
    });
    parallel_for(m * n, std::max<int64_t>(1, (1 << 20) / k), [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) elements_[i] = product(weights[i % m], columns[i / m]);
    });
  }

  // A kernel multiplies the sum of a block, or of a part of it, with two scales (at most two roundings), and adds up in
  // any order. The longest chain of additions is that of one thread over all blocks; kernels that share a row among
  // threads have shorter ones, and at most 8 more additions to join them. With n roundings the error is at most
  // n u / (1 - n u) times the sum of the magnitudes (Higham 2002, Accuracy and Stability, section 3.1).
  double tolerance() const override {
    const double all = static_cast<double>(blocks_ + 10) * 0x1p-24;
    return all / (1.0 - all);
  }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i) {
      const Element& element = elements_[first + i];
      to.expected[i] = element.sum;
      to.low[i] = element.sum - tolerance() * element.magnitudes;
      to.high[i] = element.sum + tolerance() * element.magnitudes;
    }
  }

 private:
  struct Element {
    double sum, magnitudes;
  };

  Element product(const Row& w, const Row& x) const {
    Element element = {0.0, 0.0};
    for (int64_t b = 0; b < blocks_; ++b) {
      int dot = 0, magnitude = 0;
      for (int j = 0; j < kBlock; ++j) {
        const int product = w.numbers[b * kBlock + j] * x.numbers[b * kBlock + j];
        dot += product;
        magnitude += std::abs(product);
      }
      const double scale = static_cast<double>(w.scales[b]) * static_cast<double>(x.scales[b]);
      element.sum += scale * dot;
      element.magnitudes += std::abs(scale) * magnitude;
    }
    return element;
  }

  int64_t blocks_;
  std::vector<Element> elements_;
};

// Where the bits of block b of a row are in memory, for each form of weights.
template <class W>
struct Form;

template <>
struct Form<const block_q4_0*> {
  int64_t rows, blocks;

  int64_t bytes() const { return 18 * rows * blocks; }
  const block_q4_0* of(const void* from) const { return static_cast<const block_q4_0*>(from); }
  void store(void* to, int64_t row, int64_t b, const block_q4_0& block) const {
    static_cast<block_q4_0*>(to)[row * blocks + b] = block;
  }
  block_q4_0 load(const void* from, int64_t row, int64_t b) const { return of(from)[row * blocks + b]; }
};

template <>
struct Form<Repacked> {
  int64_t rows, blocks;

  int64_t bytes() const { return 18 * rows * blocks; }
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
  int64_t bytes() const { return groups() * chunks() * (128 * 16 + 32 * 8); }
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

template <class W>
class Description : public Operator {
 public:
  static constexpr bool is_aligned = !std::is_same_v<W, const block_q4_0*>;

  const char* title() const override { return "q4_0 x q8_1 matrix multiply"; }
  std::vector<Parameter> parameters() const override {
    return {{"m", 1, 4096, "Rows of the weights, and of the result"},
            {"n", 1, 4, "Columns of activations, and of the result"},
            {"k", kBlock, 14336, "Weights of a row, a multiple of 32", {}, kBlock}};
  }

  // A block_q4_0 as nine numbers of 2 bytes, which a kernel may expect aligned to 2 bytes and no more.
  std::vector<Tensor> tensors(const Shape& shape) const override {
    const int64_t m = shape[0], n = shape[1], blocks = shape[2] / kBlock;
    const Tensor blocks_of_18 = {"weights", Type::float16, Role::input, m, 9 * blocks};
    const Tensor aligned = vector_tensor("weights", Type::uint32, Role::input, words(form(shape)));
    using Op = Q4Gemm<W>;
    const int64_t scratch = std::is_same_v<W, Fragments> ? Op::kScratchOfX * ((n + 63) / 64 * 64) * ((blocks + 1) / 2)
                                                         : Op::kSplits * std::min(n, Op::kSplitColumns) * m;
    return {{"y", Type::float32, Role::output, n, m},
            is_aligned ? aligned : blocks_of_18,
            {"x", Type::uint32, Role::input, n, 9 * blocks},
            vector_tensor("scratch", Type::float32, Role::scratch, scratch)};
  }

  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<typename Q4Gemm<W>::Launch>(launch)(
        form(a.shape).of(a.tensor<const void>(kWeights)), a.tensor<const block_q8_1>(kX), a.tensor<float>(kY),
        a.tensor<float>(kScratch), a.shape[0], a.shape[1], a.shape[2], stream);
  }

  // A multiplication and an addition for each weight and column.
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) * static_cast<double>(shape[2]);
  }
  bool shows_operations() const override { return true; }

  // One block; rows of one, two or three blocks, and of tiles with a rest; rows and columns around those of a tile.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t k : {32, 64, 96, 128, 160, 256, 288, 512, 1024, 1056}) shapes.push_back({{5, 3, k}});
    for (const int64_t m : {1, 3, 4, 31, 33, 63, 64, 65, 129}) shapes.push_back({{m, 1, 160}});
    for (const int64_t n : {1, 2, 4, 5, 7, 8, 9, 16, 17}) shapes.push_back({{6, n, 288}});
    for (const int64_t n : {31, 33, 65}) shapes.push_back({{37, n, 96}});
    shapes.push_back({{cpu_device ? 131 : 989, 6, 1312}});
    shapes.push_back({{1, 1, 14336}});
    return shapes;
  }

  // All pointers as little aligned as they may be; so are y and the weights alone.
  std::vector<Variant> variants(const Shape& shape) const override {
    std::vector<Variant> result(2, plain());
    Variant& off = result[1];
    off.places[kY].offset = off.places[kX].offset = 1;
    off.places[kWeights].offset = is_aligned ? 4 : 1;
    if (shape[2] == 288 && shape[1] == 5) {
      result.push_back(plain());
      result.back().places[kWeights].offset = is_aligned ? 4 : 3;
    }
    return result;
  }

  // Any 4 bits; whole numbers from -127 to 127; scales of either sign for weights, as a quantizer writes them. Blocks
  // differ in scale by a factor of 4, and one of 64 has the scale 0.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    const int64_t blocks = shape[2] / kBlock;
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    if (tensor == kX)
      return for_blocks(shape[1] * blocks, [=](int64_t i) { static_cast<block_q8_1*>(to)[i] = activation(key, i); });
    const Form<W> form = Description::form(shape);
    if constexpr (is_aligned) std::memset(to, 0, static_cast<size_t>(4 * words(form)));  // what belongs to no block
    for_blocks(shape[0] * blocks, [=](int64_t i) { form.store(to, i / blocks, i % blocks, weight(key, i)); });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    Rows weights(shape[0], shape[2]);
    const Form<W> form = Description::form(shape);
    const void* from = inputs[kWeights];
    weights.fill([=](int64_t i, int8_t* numbers) {
      const block_q4_0 block = form.load(from, i / form.blocks, i % form.blocks);
      for (int j = 0; j < kBlock; ++j) numbers[j] = static_cast<int8_t>(weight_of(block, j));
      return block.d;
    });
    return std::make_unique<Answer>(weights, static_cast<const block_q8_1*>(inputs[kX]), shape[0], shape[1], shape[2]);
  }

 private:
  static Form<W> form(const Shape& shape) { return {shape[0], shape[2] / kBlock}; }
  static int64_t words(const Form<W>& form) { return (form.bytes() + 3) / 4; }

  template <class Body>
  static void for_blocks(int64_t count, Body body) {
    parallel_for(count, 1 << 11, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) body(i);
    });
  }

  static float scale(uint32_t hash) {
    return hash % 64 == 0 ? 0.0f : (0.5f + static_cast<float>(hash >> 8) * 0x1.8p-24f) * 0x1p-6f;
  }
  static block_q4_0 weight(uint64_t key, int64_t i) {
    const uint32_t hash = hash32(key, i);
    block_q4_0 block;
    block.d = Float16::from(hash >> 6 & 1 ? scale(hash) : -scale(hash));
    for (int word = 0; word < 4; ++word) {
      const uint32_t nibbles = hash32(key ^ 0x5bd1e995u, 4 * i + word);
      std::memcpy(block.qs + 4 * word, &nibbles, 4);
    }
    return block;
  }
  static block_q8_1 activation(uint64_t key, int64_t i) {
    block_q8_1 block;
    int sum = 0;
    for (int j = 0; j < kBlock; ++j) {
      block.qs[j] = static_cast<int8_t>(static_cast<int>(hash32(key ^ 0x5bd1e995u, kBlock * i + j) % 255) - 127);
      sum += block.qs[j];
    }
    const float d = scale(hash32(key, i));
    block.d = Float16::from(d);
    block.s = Float16::from(static_cast<float>(sum) * d);
    return block;
  }
};

}  // namespace q4_gemm

template <class W>
const Operator& Q4Gemm<W>::get() {
  static const q4_gemm::Description<W> description;
  return description;
}

template struct Q4Gemm<const block_q4_0*>;
template struct Q4Gemm<Repacked>;
template struct Q4Gemm<Fragments>;

}  // namespace ladder
#endif  // LADDER_OPERATOR
