// Work that is repeated on the same data, so that a cache or the arithmetic decides the time, and not DRAM: ceilings.
// Every operator here has the parameters n and repeats.
#pragma once
#include "common/stage.h"

namespace ladder {

// Reads all of n words `repeats` times, in whatever order. `to` holds a word for each kTile of a reading; it is zero
// before the launch, and afterwards its words add up to `repeats` times the sum of those of `from`, modulo 2^32.
struct RepeatedRead {
  using Launch = void (*)(const float* from, float* to, int64_t n, int64_t repeats, cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kTile = 4096;
};

// Replaces each of n floats x by x² + kShift, as one fused multiply-add, `repeats` times. The sequence stays between
// -2 and 2 and never settles: a step too few, too many or with another rounding changes the last bits, and all are
// compared.
struct RepeatedFma {
  using Launch = void (*)(const float* input, float* output, int64_t n, int64_t repeats, cudaStream_t stream);
  static const Operator& get();

  static constexpr float kShift = -1.9f;
};

// A matrix product, added up `repeats` times: output = repeats · A · B. Rows of A and columns of B are kWords 32-bit
// words each: 64 halfs, or 128 int8. The output has n elements in rows of kColumns, the last row may be incomplete; A
// has as many rows, up to the next multiple of kRows. All products and sums of halfs are whole numbers that float32
// holds exactly; sums of int8 are modulo 2^32.
struct Products {
  static constexpr int64_t kRows = 64, kColumns = 256, kWords = 32, kTile = kRows * kColumns;

  // With more repeats a sum of halfs might be rounded: 64 · 4 · 4 · 16384 = 2^24.
  static const char* rounds(const Shape& shape) {
    return shape[1] > 16384 ? "float32 would round the sums; give at most 16384 repeats" : nullptr;
  }
};
struct HalfProducts : Products {
  using Launch = void (*)(const uint32_t* a, const uint32_t* b, float* output, int64_t n, int64_t repeats,
                          cudaStream_t stream);
  static const Operator& get();
};
struct Int8Products : Products {
  using Launch = void (*)(const uint32_t* a, const uint32_t* b, int32_t* output, int64_t n, int64_t repeats,
                          cudaStream_t stream);
  static const Operator& get();
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <cmath>
#include <cstring>
#include <numeric>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"
#include "common/text.h"

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

 protected:
  // Without alignment too.
  std::vector<Variant> aligned_or_not() const {
    std::vector<Variant> result(2, plain());
    result[1].places[kFrom].offset = result[1].places[kTo].offset = 1;
    return result;
  }
};

class ReadAnswer : public Oracle {
 public:
  ReadAnswer(const uint32_t* from, int64_t n, int64_t repeats, int64_t pieces)
      : sum_(std::accumulate(from, from + n, uint32_t{0}) * static_cast<uint32_t>(repeats)), pieces_(pieces) {}

  double tolerance() const override { return 0; }
  void answer(const Variant&, int, int64_t, int64_t, const Answers&) const override {}
  std::string judge(int, const void* pieces) const override {
    const auto* words = static_cast<const uint32_t*>(pieces);
    const uint32_t got = std::accumulate(words, words + pieces_, uint32_t{0});
    return got == sum_ ? "" : text("the sum of all readings is wrong: expected 0x%08x, got 0x%08x", sum_, got);
  }

 private:
  uint32_t sum_;
  int64_t pieces_;
};

class Read : public Description {
 public:
  const char* title() const override { return "repeated reading"; }
  bool shows_operations() const override { return false; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, Role::input, shape[0]),
            vector_tensor("to", Type::uint32, Role::pieces, pieces(shape))};
  }
  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<RepeatedRead::Launch>(launch)(a.tensor<float>(kFrom), a.tensor<float>(kTo), a.shape[0], a.shape[1],
                                                   stream);
  }
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 31, 1000, 1025, 4095, 4096, 4097, 12289})
      for (const int64_t repeats : {1, 3}) shapes.push_back({{n, repeats}});
    shapes.push_back({{1000003, 2}});
    return shapes;
  }
  std::vector<Variant> variants(const Shape&) const override { return aligned_or_not(); }
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    auto* words = static_cast<uint32_t*>(to);
    parallel_for(shape[0], 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) words[i] = hash32(seed, i);
    });
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<ReadAnswer>(static_cast<const uint32_t*>(inputs[kFrom]), shape[0], shape[1], pieces(shape));
  }

 private:
  static int64_t pieces(const Shape& shape) {
    return (shape[0] + RepeatedRead::kTile - 1) / RepeatedRead::kTile * shape[1];
  }
};

// The inputs repeat after so many elements, a prime number, so that the oracle computes few sequences and a thread that
// takes a neighbour's element is detected.
constexpr int64_t kPeriod = 1009;

class FmaAnswer : public Oracle {
 public:
  FmaAnswer(const float* input, int64_t n, int64_t repeats) : answers_(input, input + std::min(n, kPeriod)) {
    for (float& x : answers_)
      for (int64_t i = 0; i < repeats; ++i) x = std::fmaf(x, x, RepeatedFma::kShift);
  }

  double tolerance() const override { return 0; }
  bool is_exact(int) const override { return true; }
  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i)
      to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(answers_[(first + i) % kPeriod]);
  }

 private:
  std::vector<float> answers_;
};

class Fma : public Description {
 public:
  const char* title() const override { return "repeated multiply-add"; }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("input", Type::float32, Role::input, shape[0]),
            vector_tensor("output", Type::float32, Role::output, shape[0])};
  }
  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<RepeatedFma::Launch>(launch)(a.tensor<float>(kFrom), a.tensor<float>(kTo), a.shape[0], a.shape[1],
                                                  stream);
  }
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 31, 33, 1000, 2047, 2048, 2049, 100003})
      for (const int64_t repeats : {1, 2, 35}) shapes.push_back({{n, repeats}});
    return shapes;
  }
  std::vector<Variant> variants(const Shape&) const override { return aligned_or_not(); }
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    auto* input = static_cast<float*>(to);
    parallel_for(shape[0], 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) input[i] = 0.75f * uniform(hash32(seed, i % kPeriod));
    });
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<FmaAnswer>(static_cast<const float*>(inputs[kFrom]), shape[0], shape[1]);
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

template <class Numbers>
class ProductAnswer : public Oracle {
 public:
  ProductAnswer(const void* a, const void* b, int64_t rows, int64_t repeats)
      : a_(values(a, rows)), b_(values(b, Products::kColumns)), repeats_(static_cast<uint32_t>(repeats)) {}

  double tolerance() const override { return 0; }
  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i) {
      const int32_t* row = a_.data() + (first + i) / Products::kColumns * kInner;
      const int32_t* column = b_.data() + (first + i) % Products::kColumns * kInner;
      uint32_t sum = 0;
      for (int k = 0; k < kInner; ++k) sum += static_cast<uint32_t>(row[k] * column[k]);
      to.expected[i] = to.low[i] = to.high[i] = Numbers::result(sum * repeats_);
    }
  }

 private:
  static constexpr int kInner = Products::kWords * Numbers::kPerWord;

  static std::vector<int32_t> values(const void* stored, int64_t rows) {
    const auto* words = static_cast<const uint32_t*>(stored);
    std::vector<int32_t> result(rows * kInner);
    for (int64_t i = 0; i < rows * Products::kWords; ++i)
      Numbers::values(words[i], result.data() + i * Numbers::kPerWord);
    return result;
  }

  std::vector<int32_t> a_, b_;
  uint32_t repeats_;
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
  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    using Element = std::conditional_t<Numbers::kOutput == Type::float32, float, int32_t>;
    reinterpret_cast<typename Op::Launch>(launch)(a.tensor<uint32_t>(kA), a.tensor<uint32_t>(kB),
                                                  a.tensor<Element>(kOutput), a.shape[0], a.shape[1], stream);
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
    return std::make_unique<ProductAnswer<Numbers>>(inputs[kA], inputs[kB], rows(shape), shape[1]);
  }
  // Those that the output needs; a kernel computes whole tiles.
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(Op::kWords * Numbers::kPerWord) *
           static_cast<double>(shape[1]);
  }

 private:
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
#endif  // LADDER_OPERATOR
