// The sum of a vector of floats.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Sum {
  // input: n floats, not necessarily aligned beyond 4 bytes; output: one float, the sum; the sum of no elements is 0.
  // scratch: kScratch floats, enough for one partial sum per 256 of 2^27 elements, one per 256 of these sums, and so
  // on. Its contents before the launch are unknown.
  using Launch = void (*)(const float* input, float* output, float* scratch, int64_t n, cudaStream_t stream);
  static const Operator& get();

  static constexpr int64_t kScratch = 1 << 20;
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <algorithm>
#include <cmath>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"

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

class Answer : public Oracle {
 public:
  Answer(const float* input, int64_t n) : n_(n) {
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

 private:
  int64_t n_;
  double sum_ = 0, magnitude_ = 0;
};

class Description : public Operator {
 public:
  const char* title() const override { return "sum"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 24, "Elements of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    std::vector<Tensor> all = {{"input", Type::float32, Role::input, 1, shape[0]},
                               {"output", Type::float32, Role::output, 1, 1},
                               {"scratch", Type::float32, Role::scratch, 1, Sum::kScratch}};
    for (Tensor& tensor : all) tensor.is_matrix = false;
    return all;
  }

  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<Sum::Launch>(launch)(a.tensor<float>(kInput), a.tensor<float>(kOutput),
                                          a.tensor<float>(kScratchSums), a.shape[0], stream);
  }

  // Sizes around those of warps, blocks and vectors, and of a block's share; one that no power of two divides.
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes;
    for (const int64_t n :
         {0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 511, 513, 1000, 1023, 1024, 1025, 4097, 65535, 65537, 262145, 1000003})
      shapes.push_back({{n}});
    return shapes;
  }

  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(2, plain());
    result[1].places[kInput].offset = result[1].places[kOutput].offset = 1;
    return result;
  }

  // Mostly positive, so that the sum grows with n; the last element is a twentieth of it, so that a dropped tail shows.
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    auto* input = static_cast<float*>(to);
    const int64_t n = shape[0];
    const uint64_t key = mix64(seed);
    parallel_for(n, 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) input[i] = uniform(hash32(key, i)) + 0.5f;
      if (end == n && n > 0) input[n - 1] = std::max(1.0f, 0.025f * static_cast<float>(n));
    });
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
#endif  // LADDER_OPERATOR
