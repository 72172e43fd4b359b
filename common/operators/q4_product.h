// y = W · x + bias as include/q4_gemm computes it: W in q4_0, x of floats, which become numbers of q8_1 on the way.
#pragma once
#include <optional>

#include "common/q4_blocks.h"
#include "common/stage.h"
#include "common/types.h"

namespace ladder {

struct Q4Product {
  struct Types {
    Type x, y;
    std::optional<Type> bias = {};
    bool repacked = true;  // weights in the form of include/q4_gemm/layout.cuh, or blocks of q4_0
  };
  static const Operator& get(Types types);

  // y: n columns of m; weights; x: n columns of k; the bias m elements, if there is one.
  enum { kY, kWeights, kX, kBias };
  using Launch = void (*)(const Arguments& arguments, cudaStream_t stream);
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <cstring>
#include <list>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"

namespace ladder {
namespace q4_product {

using Op = Q4Product;

constexpr int64_t kGroup = 64, kChunk = 64;  // rows and numbers to which the repacked form is padded

int64_t padded(int64_t count, int64_t to) { return (count + to - 1) / to * to; }
int64_t weight_bytes(bool repacked, int64_t m, int64_t k) {
  return (repacked ? padded(m, kGroup) * padded(k, kChunk) : m * k) / kBlock * 18;
}

// The place of a weight in the repacked form, and of its scale, as layout.cuh describes them.
struct Place4 {
  int64_t byte;
  int shift;
};
int64_t lane_of(int64_t row, int64_t i, int64_t k) {  // of 16 bytes, as if t were 0
  const int64_t piece = row / kGroup * (padded(k, kChunk) / kChunk) + i / kChunk;
  return piece * 128 + row % kGroup / 16 * 32 + row % 8 * 4;
}
int64_t word_of(int64_t row, int64_t i) { return 2 * (i % kChunk / kBlock) + row % 16 / 8; }
Place4 place_of(int64_t row, int64_t i, int64_t k) {
  const int64_t t = i % kBlock / 8, of_eight = i % 8;
  return {(lane_of(row, i, k) + t) * 16 + word_of(row, i) * 4 + of_eight % 4, of_eight < 4 ? 0 : 4};
}
int64_t scale_place(int64_t row, int64_t i, int64_t m, int64_t k) {
  return padded(m, kGroup) * padded(k, kChunk) / 2 + 2 * (lane_of(row, i, k) + word_of(row, i));
}

void write(bool repacked, int64_t row, int64_t b, int64_t m, int64_t k, const block_q4_0& block, uint8_t* to) {
  if (!repacked) {
    std::memcpy(to + (row * (k / kBlock) + b) * 18, &block, sizeof block);
    return;
  }
  for (int i = 0; i < kBlock; ++i) {
    const Place4 place = place_of(row, b * kBlock + i, k);
    to[place.byte] = static_cast<uint8_t>(to[place.byte] | (weight_of(block, i) + 8) << place.shift);
  }
  std::memcpy(to + scale_place(row, b * kBlock, m, k), &block.d, sizeof block.d);
}
block_q4_0 read(bool repacked, int64_t row, int64_t b, int64_t m, int64_t k, const uint8_t* from) {
  block_q4_0 block = {};
  if (!repacked) {
    std::memcpy(&block, from + (row * (k / kBlock) + b) * 18, sizeof block);
    return block;
  }
  for (int i = 0; i < kBlock; ++i) {
    const Place4 place = place_of(row, b * kBlock + i, k);
    const int q = from[place.byte] >> place.shift & 15;
    block.qs[i % 16] = static_cast<uint8_t>(block.qs[i % 16] | q << (i < 16 ? 0 : 4));
  }
  std::memcpy(&block.d, from + scale_place(row, b * kBlock, m, k), sizeof block.d);
  return block;
}

double unit_roundoff(Type type) { return type == Type::float16 ? 0x1p-11 : type == Type::bfloat16 ? 0x1p-8 : 0.0; }

class Answer : public Oracle {
 public:
  Answer(const Op::Types& types, const Shape& shape, const std::vector<const void*>& inputs)
      : types_(types), m_(shape[0]), k_(shape[2]), bias_(types.bias ? inputs[Op::kBias] : nullptr) {
    const int64_t n = shape[1], blocks = k_ / kBlock;
    const auto* weights = static_cast<const uint8_t*>(inputs[Op::kWeights]);
    weights_.resize(m_ * blocks);
    parallel_for(m_ * blocks, 1 << 10, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) weights_[i] = read(types.repacked, i / blocks, i % blocks, m_, k_, weights);
    });
    x_.resize(n * blocks);
    for (int64_t b = 0; b < n * blocks; ++b) {
      float numbers[kBlock];
      for (int i = 0; i < kBlock; ++i)
        numbers[i] = static_cast<float>(element(types.x, inputs[Op::kX], b * kBlock + i));
      x_[b] = quantized_q8_1(numbers);
    }
  }

  // As in common/operators/q4_gemm.h, and one addition more, of the bias.
  double tolerance() const override {
    const double all = static_cast<double>(k_ / kBlock + 11) * 0x1p-24;
    return all / (1.0 - all) + unit_roundoff(types_.y);
  }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    const double error = tolerance() - unit_roundoff(types_.y);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = (first + i) % m_, column = (first + i) / m_, blocks = k_ / kBlock;
      double sum = bias_ ? element(*types_.bias, bias_, row) : 0.0, magnitudes = std::abs(sum);
      for (int64_t b = 0; b < blocks; ++b) {
        const block_q4_0& w = weights_[row * blocks + b];
        const block_q8_1& x = x_[column * blocks + b];
        int dot = 0, magnitude = 0;
        for (int j = 0; j < kBlock; ++j) {
          const int product = weight_of(w, j) * x.qs[j];
          dot += product;
          magnitude += std::abs(product);
        }
        const double scale = Float16::value(w.d) * Float16::value(x.d);
        sum += scale * dot;
        magnitudes += std::abs(scale) * magnitude;
      }
      to.expected[i] = sum;
      to.low[i] = rounded(sum - error * magnitudes);
      to.high[i] = rounded(sum + error * magnitudes);
    }
  }

 private:
  // Rounding is monotonic: the bounds of the exact value give those of the rounded one.
  double rounded(double value) const {
    if (types_.y == Type::float32) return value;
    return with(types_.y, [=](auto t) { return t.value(t.from(static_cast<float>(value))); });
  }

  Op::Types types_;
  int64_t m_, k_;
  const void* bias_;
  std::vector<block_q4_0> weights_;
  std::vector<block_q8_1> x_;
};

class Description : public Operator {
 public:
  explicit Description(const Op::Types& types) : types_(types) {}
  bool is_of(const Op::Types& t) const {
    return t.x == types_.x && t.y == types_.y && t.bias == types_.bias && t.repacked == types_.repacked;
  }

  const char* title() const override { return "q4_0 x floats matrix multiply"; }
  std::vector<Parameter> parameters() const override {
    return {{"m", 1, 4096, "Rows of the weights, and of the result"},
            {"n", 1, 1, "Columns of x, and of the result"},
            {"k", kBlock, 14336, "Weights of a row, a multiple of 32", {}, kBlock}};
  }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const int64_t m = shape[0], n = shape[1], k = shape[2], bytes = weight_bytes(types_.repacked, m, k);
    const Tensor blocks = {"weights", Type::float16, Role::input, m, 9 * k / kBlock};
    std::vector<Tensor> all = {
        {"y", types_.y, Role::output, n, m},
        types_.repacked ? vector_tensor("weights", Type::uint32, Role::input, bytes / 4) : blocks,
        {"x", types_.x, Role::input, n, k}};
    if (types_.bias) all.push_back(vector_tensor("bias", *types_.bias, Role::input, m));
    return all;
  }

  void launch(AnyLaunch launch, const Arguments& arguments, cudaStream_t stream) const override {
    reinterpret_cast<Op::Launch>(launch)(arguments, stream);
  }
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) * static_cast<double>(shape[2]);
  }
  bool shows_operations() const override { return true; }

  // One block; odd numbers of blocks; rows, columns and k around those of tiles.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t k : {32, 64, 96, 128, 160, 288, 1056}) shapes.push_back({{5, 3, k}});
    for (const int64_t m : {1, 15, 16, 17, 63, 64, 65, 129, 257}) shapes.push_back({{m, 1, 160}});
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 65}) shapes.push_back({{6, n, 288}});
    shapes.push_back({{cpu_device ? 331 : 989, 5, 1312}});
    shapes.push_back({{1, 1, 14336}});
    shapes.push_back({{70, 9, 1056}});  // columns of so many numbers that a kernel of its own quantizes them
    // Enough k for warps that share it, and for a ring of copies to come round, which the CPU device takes minutes for.
    shapes.push_back({{70, 20, cpu_device ? 2080 : 40992}});
    return shapes;
  }

  // Contiguous; all pointers as little aligned as they may be; x and y of several columns with gaps in between.
  std::vector<Variant> variants(const Shape& shape) const override {
    std::vector<Variant> result(shape[1] > 1 ? 3 : 2, plain());
    for (size_t i = 0; i < result[1].places.size(); ++i)
      result[1].places[i].offset = i == Op::kWeights && types_.repacked ? 4 : 1;
    if (shape[1] > 1) {
      result[2].places[Op::kX].layout = {shape[2] + 8};
      result[2].places[Op::kY].layout = {shape[0] + 1};
    }
    return result;
  }

  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    const int64_t m = shape[0], k = shape[2], blocks = k / kBlock;
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    if (tensor == Op::kWeights) {
      std::memset(to, 0, static_cast<size_t>(weight_bytes(types_.repacked, m, k)));
      parallel_for(m, 8, [&](int, int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t b = 0; b < blocks; ++b)
            write(types_.repacked, row, b, m, k, weight(key, row * blocks + b), static_cast<uint8_t*>(to));
      });
      return;
    }
    const Tensor all = tensors(shape)[tensor];
    for (int64_t i = 0; i < all.rows * all.cols; ++i) {
      // Blocks differ in scale by a factor of 4 and one of 64 is zero, so that no scale may be another's.
      const uint32_t of_block = hash32(key ^ 0x51ed27u, i / kBlock);
      const float scale = of_block % 64 == 0 ? 0.0f : 0.5f + static_cast<float>(of_block >> 8) * 0x1.8p-24f;
      set_element(all.type, to, i, uniform(hash32(key, i)) * scale);
    }
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(types_, shape, inputs);
  }

 private:
  // Any 4 bits, and a scale of either sign.
  static block_q4_0 weight(uint64_t key, int64_t i) {
    const uint32_t hash = hash32(key, i);
    const float scale = hash % 64 == 0 ? 0.0f : (0.5f + static_cast<float>(hash >> 8) * 0x1.8p-24f) * 0x1p-6f;
    block_q4_0 block;
    block.d = Float16::from(hash >> 6 & 1 ? scale : -scale);
    for (int word = 0; word < 4; ++word) {
      const uint32_t nibbles = hash32(key ^ 0x5bd1e995u, 4 * i + word);
      std::memcpy(block.qs + 4 * word, &nibbles, 4);
    }
    return block;
  }

  Op::Types types_;
};

}  // namespace q4_product

const Operator& Q4Product::get(Types types) {
  static std::list<q4_product::Description> all;
  for (const auto& known : all)
    if (known.is_of(types)) return known;
  return all.emplace_back(types);
}

}  // namespace ladder
#endif  // LADDER_OPERATOR
