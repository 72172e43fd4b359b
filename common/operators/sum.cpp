#include "common/operators/sum.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/operators/parts.h"
#include "common/text.h"

namespace ladder {
namespace sum {

enum Place { kInput, kOutput, kScratchSums };

// A float32 sum in whatever order is off by at most (n - 1) u of the sum of the magnitudes, u = 2^-24; with roundings
// that are independent of each other, by 4 sqrt(n) u (Higham and Mary 2019, λ = 4). A tree or a thousand partial sums
// stay within that. A float that adds up millions of elements one by one loses whole addends, and is not accepted.
double tolerance(int64_t n) {
  const double u = 0x1p-24, count = static_cast<double>(std::max<int64_t>(n, 1));
  return std::fmin((count - 1.0) * u, 4.0 * std::sqrt(count) * u);
}

constexpr int64_t kMostToTry = 4096;

class Answer : public Oracle {
 public:
  Answer(const float* input, int64_t n) : input_(input), n_(n) {
    double sums[kMaxParts] = {}, magnitudes[kMaxParts] = {};
    const int parts = parallel_for(n, 1 << 16, [&](int part, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        sums[part] += static_cast<double>(input[i]);
        magnitudes[part] += std::abs(static_cast<double>(input[i]));
      }
    });
    for (int part = 0; part < parts; ++part) sum_ += sums[part], magnitude_ += magnitudes[part];
  }

  double tolerance() const override { return sum::tolerance(n_); }

  void answer(const Variant&, int, int64_t, int64_t, const Answers& to) const override {
    const double slack = tolerance() * magnitude_;
    to.expected[0] = sum_;
    to.low[0] = sum_ - slack;
    to.high[0] = sum_ + slack;
  }

  // Which elements the sum that was got would be of: all but one, one of them twice, or the first few.
  std::string cause(int, const Wrong& wrong) const override {
    if (n_ > kMostToTry) return "";
    const double slack = 1e-7 * magnitude_;  // less than what is allowed, since one element must be told from another
    const auto is = [=](double sum) { return std::abs(wrong.got - sum) <= slack; };
    if (n_ > 0 && is(0)) return "this is the sum of nothing";
    std::vector<std::string> found;
    double first = 0;
    for (int64_t i = 0; i < n_; ++i) {
      const double x = static_cast<double>(input_[i]);
      const auto number = static_cast<long long>(i);
      const bool is_first = i > 0 && is(first);
      if (is_first) found.push_back(text("this is the sum of the first %lld alone", number));
      if (is(sum_ - x) && !(is_first && i == n_ - 1))
        found.push_back(text("this is the sum without element %lld", number));
      if (is(sum_ + x)) found.push_back(text("this is the sum with element %lld added twice", number));
      first += x;
    }
    return found.size() == 1 ? found.front() : "";
  }

 private:
  const float* input_;
  int64_t n_;
  double sum_ = 0, magnitude_ = 0;
};

class Description : public Operator {
 public:
  const char* title() const override { return "sum"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 24, "Elements of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("input", Type::float32, Role::input, shape[0]),
            vector_tensor("output", Type::float32, Role::output, 1),
            vector_tensor("scratch", Type::float32, Role::scratch, Sum::scratch_floats(shape[0]))};
  }

  // Sizes around those of warps, blocks and vectors, and of a block's share. The last is more than a resident grid
  // reads at once, if a thread reads 16 elements.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    return shapes_of({0,   1,   2,    3,    31,   32,   33,   255,   256,   257,
                      511, 513, 1000, 1023, 1024, 1025, 4097, 65535, 65537, cpu_device ? 262147 : 6000011});
  }

  std::vector<Variant> variants(const Shape&) const override { return {plain(), off_by({1, 1})}; }

  double operations(const Shape& shape) const override { return static_cast<double>(shape[0]); }  // an addition each

  // Mostly positive, so that the sum grows with n; the last element is a twentieth of it, so that a dropped tail shows.
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    auto* input = static_cast<float*>(to);
    const int64_t n = shape[0];
    const uint64_t key = mix64(seed);
    fill_each<float>(to, n, [=](int64_t i) { return uniform(hash32(key, i)) + 0.5f; });
    if (n > 0) input[n - 1] = std::max(1.0f, 0.025f * static_cast<float>(n));
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(static_cast<const float*>(inputs[kInput]), shape[0]);
  }
};

}  // namespace sum

const Operator& Sum::get() {
  static const sum::Description description;
  return description;
}

}  // namespace ladder
