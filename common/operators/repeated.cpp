#include "common/operators/repeated.h"

#include <cmath>
#include <cstring>
#include <numeric>

#include "common/operators/parts.h"

namespace ladder {
namespace repeated {

enum Place { kFrom, kTo };
enum ProductPlace { kA, kB, kOutput };

// What the operators share.
class Description : public Operator {
 public:
  std::vector<Parameter> parameters() const override {
    return {{"n", 0, 1 << 24, "Words read, or elements computed, of the main input"},
            {"repeats", 1, 16, "How often the work is repeated"}};
  }
  bool shows_operations() const override { return true; }
  std::vector<Variant> variants(const Shape&) const override { return {plain(), off_by({1, 1})}; }
};

class Read : public Description {
 public:
  const char* title() const override { return "repeated reading"; }
  bool shows_operations() const override { return false; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, Role::input, shape[0]),
            vector_tensor("to", Type::uint32, Role::pieces, pieces(shape))};
  }

  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 31, 1000, 1025, 4095, 4096, 4097, 12289})
      for (const int64_t repeats : {1, 3}) shapes.push_back({{n, repeats}});
    shapes.push_back({{1000003, 2}});
    return shapes;
  }
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    fill_each<uint32_t>(to, shape[0], [=](int64_t i) { return hash32(seed, i); });
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<SumOfPieces>("all readings", static_cast<const uint32_t*>(inputs[kFrom]), shape[0],
                                         shape[1], pieces(shape));
  }

 private:
  static int64_t pieces(const Shape& shape) {
    return (shape[0] + RepeatedRead::kTile - 1) / RepeatedRead::kTile * shape[1];
  }
};

// The inputs repeat after so many elements, a prime number, so that the oracle computes few sequences and a thread that
// takes a neighbour's element is detected.
constexpr int64_t kPeriod = 1009;

class Fma : public Description {
 public:
  const char* title() const override { return "repeated multiply-add"; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("input", Type::float32, Role::input, shape[0]),
            vector_tensor("output", Type::float32, Role::output, shape[0])};
  }

  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 31, 33, 1000, 2047, 2048, 2049, 100003})
      for (const int64_t repeats : {1, 2, 35}) shapes.push_back({{n, repeats}});
    return shapes;
  }
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    fill_each<float>(to, shape[0], [=](int64_t i) { return 0.75f * uniform(hash32(seed, i % kPeriod)); });
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const auto* input = static_cast<const float*>(inputs[kFrom]);
    std::vector<float> answers(input, input + std::min(shape[0], kPeriod));
    for (float& x : answers)
      for (int64_t i = 0; i < shape[1]; ++i) x = std::fmaf(x, x, RepeatedFma::kShift);
    return exact([=](int64_t i) { return answers[i % kPeriod]; }, true);
  }
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }
};

// The type of the numbers in the words of A and B, how many fit into a word, and the sum of the products of two words'.
struct Halfs {
  static constexpr Type kOutput = Type::float32;
  static constexpr int kPerWord = 2;
  static uint32_t word(uint32_t hash) {  // whole numbers from -4 to 4
    return Float16::from(static_cast<float>(hash % 9) - 4.0f) |
           uint32_t{Float16::from(static_cast<float>((hash >> 16) % 9) - 4.0f)} << 16;
  }
  static void values(uint32_t word, int32_t* to) {
    for (int k = 0; k < kPerWord; ++k) to[k] = static_cast<int32_t>(Float16::value((word >> 16 * k) & 0xffffu));
  }
  static double result(uint32_t sum) { return static_cast<double>(static_cast<int32_t>(sum)); }
};
struct Int8s {
  static constexpr Type kOutput = Type::uint32;
  static constexpr int kPerWord = 4;
  static uint32_t word(uint32_t hash) { return hash; }
  static void values(uint32_t word, int32_t* to) {
    for (int k = 0; k < kPerWord; ++k) to[k] = static_cast<int8_t>(word >> 8 * k & 0xffu);
  }
  static double result(uint32_t sum) { return static_cast<double>(sum); }
};

template <class Op, class Numbers>
class Product : public Description {
 public:
  const char* title() const override { return "repeated matrix product"; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    Tensor b{"b", Type::uint32, Role::input, Op::kColumns, Op::kWords};
    b.shared = true;
    return {{"a", Type::uint32, Role::input, rows(shape), Op::kWords},
            b,
            vector_tensor("output", Numbers::kOutput, Role::output, shape[0])};
  }

  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 255, 257, 16385}) shapes.push_back({{n, 1}});
    for (const int64_t n : {2049, 16384}) shapes.push_back({{n, 3}});
    return shapes;
  }
  std::vector<Variant> variants(const Shape&) const override { return {plain()}; }
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    auto* words = static_cast<uint32_t*>(to);
    for (int64_t i = 0; i < tensors(shape)[tensor].count(); ++i) words[i] = Numbers::word(hash32(seed + tensor, i));
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const std::vector<int32_t> a = values(inputs[kA], rows(shape)), b = values(inputs[kB], Op::kColumns);
    const auto repeats = static_cast<uint32_t>(shape[1]);
    return exact([=](int64_t i) {
      const int32_t* row = a.data() + i / Op::kColumns * kInner;
      const int32_t* column = b.data() + i % Op::kColumns * kInner;
      uint32_t sum = 0;
      for (int k = 0; k < kInner; ++k) sum += static_cast<uint32_t>(row[k] * column[k]);
      return Numbers::result(sum * repeats);
    });
  }
  // Those that the output needs; a kernel computes whole tiles.
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(kInner) * static_cast<double>(shape[1]);
  }

 private:
  static constexpr int kInner = Op::kWords * Numbers::kPerWord;

  static std::vector<int32_t> values(const void* stored, int64_t rows) {
    const auto* words = static_cast<const uint32_t*>(stored);
    std::vector<int32_t> result(rows * kInner);
    for (int64_t i = 0; i < rows * Op::kWords; ++i) Numbers::values(words[i], result.data() + i * Numbers::kPerWord);
    return result;
  }
  static int64_t rows(const Shape& shape) { return (shape[0] + Op::kTile - 1) / Op::kTile * Op::kRows; }
};

}  // namespace repeated

const Operator& RepeatedRead::get() {
  static const repeated::Read description;
  return description;
}
const Operator& RepeatedFma::get() {
  static const repeated::Fma description;
  return description;
}
const Operator& HalfProducts::get() {
  static const repeated::Product<HalfProducts, repeated::Halfs> description;
  return description;
}
const Operator& Int8Products::get() {
  static const repeated::Product<Int8Products, repeated::Int8s> description;
  return description;
}

}  // namespace ladder
