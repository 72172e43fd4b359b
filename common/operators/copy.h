// A copy of words: to[i] = from[i], bit by bit.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Copy {
  // n floats each, with any bits; neither pointer is necessarily aligned beyond 4 bytes.
  using Launch = void (*)(const float* from, float* to, int64_t n, cudaStream_t stream);
  static const Operator& get();

  static constexpr uint32_t kPatternStep = 0x9e3779b9u;  // word i of the input is i times this
};

// Reading alone, with a launcher like Copy's: `to` is zero before the launch, and afterwards its words add up to the
// sum of those of `from`, modulo 2^32.
struct Read {
  using Launch = Copy::Launch;
  static const Operator& get();
};

// Writing alone, with a launcher like Copy's: it writes what a copy would have written. `from` is not used.
struct Write {
  using Launch = Copy::Launch;
  static const Operator& get();
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <numeric>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/text.h"

namespace ladder {
namespace copy {

enum Place { kFrom, kTo };

uint32_t pattern(int64_t i) { return static_cast<uint32_t>(i) * Copy::kPatternStep; }

class Answer : public Oracle {
 public:
  Answer(const uint32_t* from, int64_t n) : from_(from), n_(n) {}

  double tolerance() const override { return 0; }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i)
      to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(from_ ? from_[first + i] : pattern(first + i));
  }

  std::string judge(int, const void* pieces) const override {
    const auto* words = static_cast<const uint32_t*>(pieces);
    const uint32_t got = std::accumulate(words, words + n_, uint32_t{0});
    const uint32_t sum = std::accumulate(from_, from_ + n_, uint32_t{0});
    if (got == sum) return "";
    return text("the sum of %lld words is wrong: expected 0x%08x, got 0x%08x", static_cast<long long>(n_), sum, got);
  }

 private:
  const uint32_t* from_;  // nullptr: nothing is read
  int64_t n_;
};

class Description : public Operator {
 public:
  Description(Role from, Role to) : from_(from), to_(to) {}

  const char* title() const override { return "copy"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 27, "Words of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, from_, shape[0]), vector_tensor("to", Type::uint32, to_, shape[0])};
  }

  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<Copy::Launch>(launch)(a.tensor<float>(kFrom), a.tensor<float>(kTo), a.shape[0], stream);
  }

  // Sizes around those of vectors, warps, blocks and tiles. The last has more tiles than a resident grid has blocks.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 1000, 1023, 1024, 1025, 4096, 8193, 65536})
      shapes.push_back({{n}});
    shapes.push_back({{cpu_device ? 1000003 : 6000011}});
    return shapes;
  }

  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result;
    for (const int from : {0, 1})
      for (const int to : {0, 1}) {
        result.push_back(plain());
        result.back().places[kFrom].offset = from;
        result.back().places[kTo].offset = to;
      }
    return result;
  }

  void fill(const Shape& shape, int, uint64_t, void* to) const override {
    auto* words = static_cast<uint32_t*>(to);
    parallel_for(shape[0], 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) words[i] = pattern(i);
    });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(static_cast<const uint32_t*>(inputs[kFrom]), shape[0]);
  }

 private:
  Role from_, to_;
};

}  // namespace copy

const Operator& Copy::get() {
  static const copy::Description description(Role::input, Role::output);
  return description;
}

const Operator& Read::get() {
  static const copy::Description description(Role::input, Role::pieces);
  return description;
}

const Operator& Write::get() {
  static const copy::Description description(Role::scratch, Role::output);
  return description;
}

}  // namespace ladder
#endif  // LADDER_OPERATOR
