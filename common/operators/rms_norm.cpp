#include "common/operators/rms_norm.h"

#include <algorithm>
#include <cmath>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"
#include "common/text.h"

namespace ladder {
namespace rms_norm {

// The largest relative error of one element that a correct float32 kernel can show, u = 2^-24 the unit roundoff.
//   x², division by cols, + eps      u + 2u + u, halved by the square root            2 u
//   rsqrtf (2 ulp in CUDA's table), or sqrtf and a division, which are better         4 u
//   · rstd, · weight                                                                  2 u
//   the sum of cols squares, halved by the square root:
//     in whatever order, terms being positive, at most (cols - 1) u;
//     with roundings that are independent of each other, 4 sqrt(cols) u (Higham and Mary 2019, A new approach to
//     probabilistic rounding error analysis, λ = 4: under one sum in a thousand exceeds it);
//     and what is not independent: an addend smaller than u times the running sum is lost whole. With x spread evenly
//     over ±√3 of its root mean square, as fill_input makes it, adding one by one loses less than 0.08 (cols u)^1.5.
//   The lost part is allowed up to a hundredth: above four million columns, adding one by one is no right answer.
double tolerance(int64_t cols) {
  const double u = 0x1p-24, n = static_cast<double>(cols);
  const double likely = 4.0 * std::sqrt(n) * u + std::fmin(0.08 * std::pow(n * u, 1.5), 0.01);
  return 8.0 * u + 0.5 * std::fmin((n - 1.0) * u, likely);
}

// Eight partial sums: float64 is precise enough for any order, and the additions need not wait for each other.
double sum_of_squares(const float* x, int64_t count) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

// There are several kinds of rows (row modulo 8), so that each term of the formula matters somewhere: ordinary rows;
// rows near 1e-3, where mean(x²) is below eps; rows near 1e3; a row of zeros (never the first). The last column is
// heavy, about a twentieth of the row's sum of squares, so that a sum that drops the tail is visibly wrong.
void fill_input(float* input, int64_t rows, int64_t cols, uint64_t seed) {
  constexpr float scales[8] = {1.0f, 1e-3f, 1e3f, 0.5f, 2e-3f, 0.0f, 3.0f, 0.03125f};
  parallel_for_rows(rows, cols, [=](int64_t row, int64_t first, int64_t last) {
    const float scale = scales[row % 8];
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(row));
    for (int64_t col = first; col < last; ++col) input[row * cols + col] = (uniform(hash32(key, col)) + 0.25f) * scale;
    const float heavy = std::max(1.0f, 0.25f * std::sqrt(static_cast<float>(cols)));
    if (last == cols) input[row * cols + cols - 1] = (key & 1 ? heavy : -heavy) * scale;
  });
}

void fill_weight(float* weight, int64_t cols, uint64_t seed) {
  const uint64_t key = mix64(seed ^ 0x7765696768740000u);
  for (int64_t col = 0; col < cols; ++col) weight[col] = weight_like(key, col);
}

std::vector<double> mean_squares(const float* x, int64_t rows, int64_t cols) {
  std::vector<double> result(rows);
  parallel_for(rows, std::max<int64_t>(1, (1 << 16) / cols), [&](int, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      result[row] = sum_of_squares(x + row * cols, cols) / static_cast<double>(cols);
  });
  return result;
}

std::string cause_of(double factor) {
  if (!(factor > 0.0)) return "";
  const double times = 1.0 / (factor * factor);  // eps aside
  if (times > 1e6)
    return text("the sum of squares is %.1g times what it should be: is something added that has no value yet?", times);
  return text("all of them are %.3g times what is right, as with a sum of squares that is %.3g times what it should be",
              factor, times);
}

Floats as_floats(Type type, const void* from, int64_t count) {
  Floats to(new float[count]);
  with(type, [&](auto t) {
    const auto* stored = static_cast<const typename decltype(t)::Stored*>(from);
    fill_each<float>(to.get(), count, [=](int64_t i) { return static_cast<float>(t.value(stored[i])); });
  });
  return to;
}

enum Place { kInput, kWeight, kOutput };

class Answer : public Oracle {
 public:
  Answer(const float* input, const float* weight, int64_t rows, int64_t cols)
      : input_(input), weight_(weight), cols_(cols), mean_squares_(mean_squares(input, rows, cols)) {}

  double tolerance() const override { return rms_norm::tolerance(cols_); }
  std::string cause(int, const Wrong& wrong) const override { return cause_of(wrong.factor); }

  void answer(const Variant& variant, int, int64_t first, int64_t count, const Answers& to) const override {
    const double allowed = tolerance();
    const bool weighted = !variant.places[kWeight].absent;
    const double eps = static_cast<double>(static_cast<float>(variant.scalars[0]));
    for_parts_of_rows(first, count, cols_, [&](int64_t row, int64_t col, int64_t done, int64_t length) {
      const double rstd = 1.0 / std::sqrt(mean_squares_[row] + eps);
      const float *x = input_ + first, *w = weight_ + col - done;
      for (int64_t i = done; i < done + length; ++i) {
        const double expected = static_cast<double>(x[i]) * rstd * (weighted ? static_cast<double>(w[i]) : 1.0);
        const double slack = allowed * std::abs(expected);
        to.expected[i] = expected;
        to.low[i] = expected - slack;
        to.high[i] = expected + slack;
      }
    });
  }

 private:
  const float *input_, *weight_;
  int64_t cols_;
  std::vector<double> mean_squares_;
};

class Description : public Operator {
 public:
  const char* title() const override { return "RMSNorm"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 8192, "Rows of the main input"}, {"cols", 1, 8192, "Columns of the main input"}};
  }
  std::vector<Scalar> scalars() const override { return {{"eps", 1e-6}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    Tensor weight{"weight", Type::float32, Role::input, 1, shape[1]};
    weight.optional = weight.shared = true;
    return {{"input", Type::float32, Role::input, shape[0], shape[1]},
            weight,
            {"output", Type::float32, Role::output, shape[0], shape[1]}};
  }

  // Of each element the square, its addition, and two multiplications; those of a whole row are left out.
  double operations(const Shape& shape) const override {
    return 4.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }

  // Sizes around those of warps, blocks and vectors; no rows; one long row.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes = {{{0, 1024}}};
    for (const int64_t cols : {1, 7, 31, 32, 33, 1000, 1023, 1024, 1025, 4095, 8191, 8193})
      for (const int64_t rows : {1, 3}) shapes.push_back({{rows, cols}});
    shapes.push_back({{989, 111}});
    shapes.push_back({{1, 1048577}});
    // More rows than gridDim.y can count. On the CPU device it would take longer than all the others together.
    if (!cpu_device) shapes.push_back({{65537, 33}});
    return shapes;
  }

  // With and without weight, each pointer off by one float; a kernel with its own eps fails one of two.
  std::vector<Variant> variants(const Shape& shape) const override {
    const double eps = 1e-6, other = 1e-5;
    if (shape[0] * shape[1] > 1 << 16) return norm_variants(*this, {{false, 0, 0, 0, eps}, {true, 1, 1, 1, other}});
    return norm_variants(*this, {{false, 0, 0, 0, eps},
                                 {true, 0, 0, 0, other},
                                 {false, 1, 0, 0, other},
                                 {false, 0, 0, 1, eps},
                                 {false, 1, 0, 1, eps},
                                 {true, 1, 0, 0, eps},
                                 {true, 0, 0, 1, other},
                                 {true, 0, 1, 0, eps},
                                 {true, 1, 0, 1, other},
                                 {true, 1, 1, 1, other}});
  }

  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    if (tensor == kInput)
      fill_input(static_cast<float*>(to), shape[0], shape[1], seed);
    else
      fill_weight(static_cast<float*>(to), shape[1], seed);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(static_cast<const float*>(inputs[kInput]),
                                    static_cast<const float*>(inputs[kWeight]), shape[0], shape[1]);
  }
};

}  // namespace rms_norm

const Operator& RmsNorm::get() {
  static const rms_norm::Description description;
  return description;
}

}  // namespace ladder
