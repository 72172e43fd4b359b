#include "common/operators/rms_norm_backward.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace rms_norm_backward {

constexpr double u = 0x1p-24;  // the unit roundoff of float32

Type type_of(const Shape& shape) {
  constexpr Type types[] = {Type::float16, Type::bfloat16, Type::float32};
  return types[shape[2]];
}
double unit_roundoff(Type type) { return type == Type::float16 ? 0x1p-11 : type == Type::bfloat16 ? 0x1p-8 : u; }

// What n additions can lose of the sum of the terms' magnitudes. Over a row: at least 32 threads share it, as in
// TypedRmsNorm::float_error. Over all rows one thread may add alone; then the bound for roundings that are independent
// of each other, and what is lost of addends that are small beside the running sum, as in rms_norm::tolerance.
double row_sum_error(int64_t cols) {
  return u * static_cast<double>(std::min(std::max<int64_t>(cols - 1, 0), (cols + 31) / 32 + 64));
}
double column_sum_error(int64_t rows) {
  const double n = static_cast<double>(rows);
  return std::min(std::max(n - 1.0, 0.0) * u, 4.0 * std::sqrt(n) * u + std::min(0.08 * std::pow(n * u, 1.5), 0.01));
}

class Answer : public Oracle {
 public:
  Answer(const Shape& shape, const std::vector<const void*>& inputs)
      : rows_(shape[0]),
        cols_(shape[1]),
        type_(type_of(shape)),
        dy_(rms_norm::as_floats(type_, inputs[kDy], rows_ * cols_)),
        x_(rms_norm::as_floats(type_, inputs[kX], rows_ * cols_)),
        weight_(rms_norm::as_floats(type_, inputs[kWeight], cols_)),
        dsum_(rms_norm::as_floats(type_, inputs[kDsum], rows_ * cols_)),
        rstd_(static_cast<const float*>(inputs[kRstd])),
        mean_squares_(rms_norm::mean_squares(x_.get(), rows_, cols_)),
        plain_(rows_),
        weighted_(rows_),
        factor_error_(TypedRmsNorm::float_error(cols_)) {
    parallel_for(rows_, std::max<int64_t>(1, (1 << 16) / cols_), [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t i = 0; i < cols_; ++i) {
          const double product = static_cast<double>(dy_[row * cols_ + i]) * static_cast<double>(x_[row * cols_ + i]);
          plain_[row].add(product);
          weighted_[row].add(product * static_cast<double>(weight_[i]));
        }
    });
  }

  double tolerance() const override { return factor_error_ + unit_roundoff(type_); }

  void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const override {
    if (tensor == kDx)
      for_parts_of_rows(first, count, cols_, [&](int64_t row, int64_t col, int64_t done, int64_t length) {
        answer_row(variant, row, col, length, {to.expected + done, to.low + done, to.high + done});
      });
    else
      answer_columns(variant, first, count, to);
  }

 private:
  struct Sum {
    double value = 0, magnitudes = 0;
    void add(double term) {
      value += term;
      magnitudes += std::abs(term);
    }
  };

  double offset(const Variant& variant) const {
    return static_cast<double>(static_cast<float>(variant.scalars[kWeightOffset]));
  }
  double rstd(const Variant& variant, int64_t row) const {
    if (!variant.places[kRstd].absent) return static_cast<double>(rstd_[row]);
    const double eps = static_cast<double>(static_cast<float>(variant.scalars[kEps]));
    return 1.0 / std::sqrt(mean_squares_[row] + eps);
  }
  // Over a row, of g · x. With an offset the magnitudes are a little more than they need be.
  Sum products(const Variant& variant, int64_t row) const {
    if (variant.places[kWeight].absent) return plain_[row];
    const double o = offset(variant);
    return {o * plain_[row].value + weighted_[row].value,
            std::abs(o) * plain_[row].magnitudes + weighted_[row].magnitudes};
  }
  double factor(const Variant& variant, int64_t col) const {
    return variant.places[kWeight].absent ? 1.0 : offset(variant) + static_cast<double>(weight_[col]);
  }

  // Rounding is monotonic, so the bounds of the exact value give those of the rounded one. 2^-140 covers what float32
  // loses of subnormal numbers on the way.
  void set(const Answers& to, int64_t i, double expected, double slack) const {
    to.expected[i] = expected;
    to.low[i] = static_cast<double>(rounded(type_, static_cast<float>(expected - slack - 0x1p-140)));
    to.high[i] = static_cast<double>(rounded(type_, static_cast<float>(expected + slack + 0x1p-140)));
  }

  // dx = a - b + dsum with a = rstd · g and b = x · rstd³ · sum / cols, where a and b may cancel. rstd is off by
  // factor_error_ relative (0 if it is given, which the bound leaves aside). a: 3 roundings, with the factor's. b:
  // three times rstd's error, up to 6 roundings in whatever order, and the error of the sum, which is relative to the
  // sum of magnitudes; a product in that sum has 3 roundings. Then the subtraction and the addition of dsum.
  void answer_row(const Variant& variant, int64_t row, int64_t col, int64_t length, const Answers& to) const {
    const float *dy = dy_.get() + row * cols_, *x = x_.get() + row * cols_, *dsum = dsum_.get() + row * cols_;
    const auto [sum, magnitudes] = products(variant, row);
    const double r = rstd(variant, row), e = factor_error_, n = static_cast<double>(cols_);
    const double sum_slack = (row_sum_error(cols_) + 3.0 * u) * magnitudes;
    for (int64_t i = 0; i < length; ++i) {
      const double value = static_cast<double>(x[col + i]);
      const double a = r * static_cast<double>(dy[col + i]) * factor(variant, col + i), b = value * r * r * r * sum / n;
      const double added = variant.places[kDsum].absent ? 0.0 : static_cast<double>(dsum[col + i]);
      const double b_slack = (3.0 * e + 6.0 * u) * std::abs(b) + std::abs(value) * r * r * r / n * sum_slack;
      const double slack = (e + 3.0 * u) * std::abs(a) + b_slack;
      const double last = u * (2.0 * (std::abs(a) + std::abs(b) + slack) + std::abs(added));
      set(to, i, a - b + added, slack + last);
    }
  }

  // Each term dy · x · rstd: rstd's error and two roundings.
  void answer_columns(const Variant& variant, int64_t first, int64_t count, const Answers& to) const {
    const std::vector<Sum>& sums = columns(variant);
    const double error = factor_error_ + 2.0 * u + column_sum_error(rows_);
    for (int64_t i = 0; i < count; ++i) set(to, i, sums[first + i].value, error * sums[first + i].magnitudes);
  }

  // The sums over all rows, computed once for each way to get rstd.
  const std::vector<Sum>& columns(const Variant& variant) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Sum>& sums = columns_[{variant.places[kRstd].absent, variant.scalars[kEps]}];
    if (!sums.empty()) return sums;
    sums.resize(cols_);
    for (int64_t row = 0; row < rows_; ++row) {
      const float *dy = dy_.get() + row * cols_, *x = x_.get() + row * cols_;
      const double r = rstd(variant, row);
      for (int64_t i = 0; i < cols_; ++i) sums[i].add(static_cast<double>(dy[i]) * static_cast<double>(x[i]) * r);
    }
    return sums;
  }

  int64_t rows_, cols_;
  Type type_;
  rms_norm::Floats dy_, x_, weight_, dsum_;
  const float* rstd_;
  std::vector<double> mean_squares_;
  std::vector<Sum> plain_, weighted_;  // of each row: of dy · x, and of dy · weight · x
  double factor_error_;
  mutable std::mutex mutex_;
  mutable std::map<std::pair<bool, double>, std::vector<Sum>> columns_;
};

class Description : public Operator {
 public:
  explicit Description(bool repeats_bits) : repeats_bits_(repeats_bits) {}

  const char* title() const override { return "RMSNorm backward"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 8192, "Rows of the main input"},
            {"cols", 1, 4096, "Columns of the main input"},
            {"dtype", 0, 1, "Type of all elements", {"half", "bfloat16", "float"}}};
  }
  std::vector<ladder::Scalar> scalars() const override { return {{"eps", 1e-6}, {"weight offset", 0.0}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const Type type = type_of(shape);
    const auto matrix = [&](const char* name, Role role) { return Tensor{name, type, role, shape[0], shape[1]}; };
    const auto row = [&](const char* name, Role role) { return Tensor{name, type, role, 1, shape[1]}; };
    const auto scratch = [&](const char* name, int64_t rows, int64_t cols) {
      Tensor tensor{name, Type::float32, Role::scratch, rows, cols};
      tensor.shared = true;
      return tensor;
    };
    std::vector<Tensor> all = {matrix("dy", Role::input),
                               matrix("x", Role::input),
                               row("weight", Role::input),
                               matrix("dsum", Role::input),
                               vector_tensor("rstd", Type::float32, Role::input, shape[0]),
                               matrix("dx", Role::output),
                               row("dweight", Role::output),
                               scratch("row scratch", 1, std::max<int64_t>(shape[0], 1)),
                               scratch("partial sums", std::clamp<int64_t>(shape[0], 1, kMostPartials), shape[1])};
    for (const int place : {kWeight, kDsum, kRstd, kDweight}) all[place].optional = true;
    all[kWeight].shared = true;
    return all;
  }

  // Of each element x² and its addition; dy · factor, its product with x and its addition; three for dx; three for
  // dweight. Those of a whole row are left out.
  double operations(const Shape& shape) const override {
    return 11.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }
  bool repeats_bits() const override { return repeats_bits_; }

  // Sizes around those of warps, vectors, blocks and what a block keeps; no rows; more rows than blocks; rows in
  // numbers that no tile divides.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes = {{{0, 1024, 1}}, {{1, 1, 2}}, {{7, 8, 0}}, {{33, 40, 1}}, {{257, 264, 2}}};
    for (const int64_t dtype : {0, 1, 2})
      for (const int64_t cols : {7, 33, 1000, 1025}) shapes.push_back({{3, cols, dtype}});
    for (const int64_t cols : {8191, 8192, 8193}) shapes.push_back({{2, cols, cols % 3}});
    shapes.push_back({{cpu_device ? 389 : 2989, 72, 1}});
    return shapes;
  }

  // As training calls it; without a weight; all there is, with an offset; every pointer off by an element; dx alone.
  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(5, plain());
    const auto give = [](Variant& variant, std::initializer_list<int> places) {
      for (const int place : places) variant.places[place].absent = false;
    };
    result[1].places[kWeight].absent = true;
    result[1].scalars[kEps] = 1e-5;
    give(result[1], {kDsum});
    give(result[2], {kDsum, kRstd});
    result[2].scalars[kWeightOffset] = 1.0;
    for (const int place : {kDy, kX, kWeight, kDsum, kDx, kDweight}) result[3].places[place].offset = 1;
    give(result[3], {kDsum});
    result[4].places[kDweight].absent = true;
    give(result[4], {kRstd});
    return result;
  }

  // dy and x are heavy in the same columns, so that mean(g · x) matters. Where mean(x²) is near 1e-6, eps matters. A
  // stored rstd is a little off what x gives, so that a kernel that computes it again is wrong.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    static constexpr float x_scales[] = {1.0f, 1e-3f, 30.0f, 0.25f, 2.0f, 0.0f, 3.0f};
    static constexpr float dy_scales[] = {0.5f, 1.0f, 0.25f, 0.0f, 0.75f};
    static constexpr float dsum_scales[] = {1.0f, 0.5f, 2.0f};
    const int64_t rows = shape[0], cols = shape[1];
    with(type_of(shape), [&](auto t) {
      using T = decltype(t);
      const uint64_t key = mix64(seed ^ 0x67726164u) + static_cast<uint64_t>(tensor);
      if (tensor == kWeight)
        fill_each<typename T::Stored>(to, cols, [=](int64_t col) { return T::from(weight_like(key, col)); });
      else if (tensor == kDy)
        rms_norm::fill_rows<T>(to, rows, cols, key, dy_scales);
      else if (tensor == kX)
        rms_norm::fill_rows<T>(to, rows, cols, key, x_scales);
      else if (tensor == kDsum)
        rms_norm::fill_rows<T>(to, rows, cols, key, dsum_scales);
    });
    if (tensor != kRstd) return;
    const Type type = type_of(shape);
    const std::unique_ptr<char[]> x(new char[rows * cols * size_of(type)]);
    fill(shape, kX, seed, x.get());
    const rms_norm::Floats floats = rms_norm::as_floats(type, x.get(), rows * cols);
    const std::vector<double> means = rms_norm::mean_squares(floats.get(), rows, cols);
    fill_each<float>(to, rows, [&](int64_t row) {
      return static_cast<float>((1.0 + 0x1p-6 * static_cast<double>(row % 3)) / std::sqrt(means[row] + 1e-6) * 1.0625);
    });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(shape, inputs);
  }

  Variant plain() const override {
    Variant variant = Operator::plain();
    variant.places[kDsum].absent = variant.places[kRstd].absent = true;
    return variant;
  }

 private:
  bool repeats_bits_;
};

}  // namespace rms_norm_backward

template <bool repeats_bits>
const Operator& BackwardNorm<repeats_bits>::get() {
  static const rms_norm_backward::Description description(repeats_bits);
  return description;
}
template struct BackwardNorm<true>;
template struct BackwardNorm<false>;

}  // namespace ladder
