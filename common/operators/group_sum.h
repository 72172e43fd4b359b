// Every word of a group gets the sum of its group added to it: the pattern of a norm, in arithmetic that is exact.
#pragma once
#include "common/stage.h"

namespace ladder {

struct GroupSum {
  // to[i] = from[i] + the sum of the group of i, modulo 2^32; n words each, with any bits. Words kGroup·g to kGroup·g +
  // kGroup - 1 are a group, and the last group may be shorter. No pointer is necessarily aligned beyond 4 bytes.
  // scratch: one word for each kGroup / 8 words, rounded up. Its contents before the launch are unknown.
  using Launch = void (*)(const uint32_t* from, uint32_t* to, uint32_t* scratch, int64_t n, cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kGroup = 32768;
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <numeric>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"

namespace ladder {
namespace group_sum {

enum Place { kFrom, kTo, kScratch };

int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

class Answer : public Oracle {
 public:
  Answer(const uint32_t* from, int64_t n) : from_(from), sums_(pieces(n, GroupSum::kGroup)) {
    parallel_for(static_cast<int64_t>(sums_.size()), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * GroupSum::kGroup, last = std::min(first + GroupSum::kGroup, n);
        sums_[group] = std::accumulate(from + first, from + last, uint32_t{0});
      }
    });
  }

  double tolerance() const override { return 0; }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i) {
      const uint32_t word = from_[first + i] + sums_[(first + i) / GroupSum::kGroup];
      to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(word);
    }
  }

 private:
  const uint32_t* from_;
  std::vector<uint32_t> sums_;
};

class Description : public Operator {
 public:
  const char* title() const override { return "sums of groups"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 24, "Words of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, Role::input, shape[0]),
            vector_tensor("to", Type::uint32, Role::output, shape[0]),
            vector_tensor("scratch", Type::uint32, Role::scratch, pieces(shape[0], GroupSum::kGroup / 8))};
  }

  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<GroupSum::Launch>(launch)(a.tensor<uint32_t>(kFrom), a.tensor<uint32_t>(kTo),
                                               a.tensor<uint32_t>(kScratch), a.shape[0], stream);
  }

  // Each word is added to its group's sum, and the sum to the word.
  double operations(const Shape& shape) const override { return 2.0 * static_cast<double>(shape[0]); }

  // Sizes around those of warps, blocks, shares of a group and groups.
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 31, 33, 1000, 1025, 4095, 4097, 32767, 32768, 32769, 65537, 100003})
      shapes.push_back({{n}});
    return shapes;
  }

  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(2, plain());
    result[1].places[kFrom].offset = result[1].places[kTo].offset = 1;
    return result;
  }

  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    auto* words = static_cast<uint32_t*>(to);
    const uint64_t key = mix64(seed);
    parallel_for(shape[0], 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) words[i] = hash32(key, i);
    });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(static_cast<const uint32_t*>(inputs[kFrom]), shape[0]);
  }
};

}  // namespace group_sum

const Operator& GroupSum::get() {
  static const group_sum::Description description;
  return description;
}

}  // namespace ladder
#endif  // LADDER_OPERATOR
