// Inputs, oracle and tolerance of float32 sums are TypedRmsNorm's; those of 16-bit sums are derived here.
#include "common/operators/rms_norm_precision.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace rms_norm_precision {

enum Place { kX, kWeight, kY };

// The host's type of a device's type.
template <class T>
using HostType = std::conditional_t<std::is_same_v<T, float>, Float32,
                                    std::conditional_t<std::is_same_v<T, __half>, Float16, Bfloat16>>;

template <class T>
constexpr Type type_of = std::is_same_v<T, float>    ? Type::float32
                         : std::is_same_v<T, __half> ? Type::float16
                                                     : Type::bfloat16;

// How far a rounding may be from the number that is rounded: u times the number, or half a subnormal step.
struct Format {
  double unit, step;
};
template <class Sum>
constexpr Format format_of = std::is_same_v<Sum, __half> ? Format{0x1p-11, 0x1p-25} : Format{0x1p-8, 0x1p-134};

// The longest chain of additions that a square passes through. A block has a thread for each element, each pair or
// each eight of them, but no more than 1024: at most cols / 1024 additions in a thread and 8 more where eight elements
// belong to a thread; 1 to join the halves of a pair; 5 in a warp, 5 among at most 32 warps. Zeros are added exactly.
double additions(int64_t cols) { return static_cast<double>(std::min(cols - 1, cols / 1024 + 20)); }

// The error of a sum in a 16-bit type, S the exact one. Each square is off by max(u · x², step), its sum by P. Adding
// two numbers of the format is exact below the normal range, so that only u counts there, n times at most:
//   |S' - S| <= P + g (S + P), g = n u / (1 - n u)     (Higham 2002, Accuracy and Stability, section 3.1)
// It holds as long as no partial sum overflows, which (1 + g) (S + P) < 65504 ensures for float16.
double growth(int64_t cols, const Format& f) {
  const double all = additions(cols) * f.unit;
  return all / (1.0 - all);
}

struct Interval {
  double low, high;
  Interval times(double error, double step) const { return {low * (1.0 - error) - step, high * (1.0 + error) + step}; }
};

// Between which two values 1 / sqrt(mean + eps) lies if every step is rounded to the format: the sum as above; cols as
// a number of the format, the division, the addition of eps, which is a number of the format too (1e-6 is 17 · 2^-24 in
// float16); hrsqrt, which is float32's rsqrt (2 ulp) rounded once more.
template <class Sum>
Interval rstd_of(double sum, double products, int64_t cols, double eps) {
  using Host = HostType<Sum>;
  const Format& f = format_of<Sum>;
  const double n = static_cast<double>(cols), own_eps = Host::value(Host::from(static_cast<float>(eps)));
  const double error = products + growth(cols, f) * (sum + products);
  Interval mean{std::max(sum - error, 0.0) / n, (sum + error) / n};
  mean = mean.times(2.0 * f.unit, f.step);
  const Interval inside{std::max(mean.low, 0.0) + own_eps, mean.high + own_eps};
  const Interval root{1.0 / std::sqrt(inside.high), 1.0 / std::sqrt(inside.low)};
  return root.times(1.5 * f.unit + 0x1p-21, 0.0);
}

template <class T, class Sum>
class Answer : public Oracle {
 public:
  using Host = HostType<T>;

  Answer(const std::vector<const void*>& inputs, int64_t rows, int64_t cols)
      : cols_(cols),
        x_(rms_norm::as_floats(type_of<T>, inputs[kX], rows * cols)),
        weight_(rms_norm::as_floats(type_of<T>, inputs[kWeight], cols)),
        sums_(rows),
        products_(rows) {
    parallel_for(rows, std::max<int64_t>(1, (1 << 16) / cols), [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        for (int64_t col = 0; col < cols; ++col) {
          const double x = static_cast<double>(x_[row * cols + col]), square = x * x;
          sums_[row] += square;
          if (x != 0.0) products_[row] += std::max(format_of<Sum>.unit * square, format_of<Sum>.step);
        }
    });
  }

  // Of 16-bit sums: of a row whose squares are no subnormal numbers, and whose mean(x²) is large beside eps.
  double tolerance() const override {
    const double unit = format_of<Sum>.unit;
    if constexpr (is_float)
      return TypedRmsNorm::float_error(cols_) + (std::is_same_v<T, float> ? 0.0 : format_of<T>.unit);
    return 0.5 * (growth(cols_, format_of<Sum>) + 4.0 * unit) + 3.5 * unit;
  }

  std::string cause(int, const Wrong& wrong) const override { return rms_norm::cause_of(wrong.factor); }

  void answer(const Variant& variant, int, int64_t first, int64_t count, const Answers& to) const override {
    const double eps = static_cast<double>(static_cast<float>(variant.scalars[0]));
    const bool weighted = !variant.places[kWeight].absent;
    for_parts_of_rows(first, count, cols_, [&](int64_t row, int64_t col, int64_t done, int64_t length) {
      const Answers part{to.expected + done, to.low + done, to.high + done};
      const float *x = x_.get() + first + done, *weight = weighted ? weight_.get() + col : nullptr;
      const double rstd = 1.0 / std::sqrt(sums_[row] / static_cast<double>(cols_) + eps);
      if constexpr (is_float) {
        const double scalars[] = {eps, 0.0, 0.0};
        TypedRmsNorm::answers(type_of<T>, length, x, rstd, weight, scalars, TypedRmsNorm::float_error(cols_), part);
      } else {
        round_each_step(length, x, rstd, rstd_of<Sum>(sums_[row], products_[row], cols_, eps), weight, part);
      }
    });
  }

 private:
  static constexpr bool is_float = std::is_same_v<Sum, float>;

  // y is rounded after the product with rstd and after that with the weight.
  static void round_each_step(int64_t count, const float* x, double exact, const Interval& rstd, const float* weight,
                              const Answers& to) {
    const Format& f = format_of<Sum>;
    for (int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(x[i]), factor = weight ? static_cast<double>(weight[i]) : 1.0;
      const double size = std::abs(value), scale = std::abs(factor);
      Interval y = Interval{size * rstd.low, size * rstd.high}.times(f.unit, size == 0.0 ? 0.0 : f.step);
      y = Interval{y.low * scale, y.high * scale}.times(weight ? f.unit : 0.0, size == 0.0 || !weight ? 0.0 : f.step);
      const bool negative = (value < 0.0) != (factor < 0.0);
      to.expected[i] = value * exact * factor;
      to.low[i] = negative ? -y.high : y.low;
      to.high[i] = negative ? -y.low : y.high;
    }
  }

  int64_t cols_;
  rms_norm::Floats x_, weight_;
  std::vector<double> sums_, products_;  // of each row: of x², and of what rounding the squares may change
};

template <class T, class Sum>
class Description : public Operator {
 public:
  using Op = RmsNormPrecision<T, Sum>;

  const char* title() const override { return typed_.title(); }
  std::vector<Parameter> parameters() const override { return typed_.parameters(); }
  std::vector<Scalar> scalars() const override { return {{"eps", 1e-6}}; }
  std::vector<Tensor> tensors(const Shape& shape) const override { return typed_.tensors(shape); }
  double operations(const Shape& shape) const override { return typed_.operations(shape); }

  // The document's columns and their neighbours, rows without a pair, an eight or a warp, and rows longer than a block
  // of 1024 threads with an element, a pair or an eight each.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes = {{{0, 1024}}};
    for (const int64_t cols : {1, 2, 7, 8, 9, 31, 32, 33, 257, 512, 1000, 1023, 1024, 1025})
      shapes.push_back({{3, cols}});
    shapes.push_back({{2, 2050}});
    shapes.push_back({{1, 8193}});
    shapes.push_back({{1, 16392}});
    shapes.push_back({{1, 65504}});
    shapes.push_back({{cpu_device ? 59 : 989, 111}});
    return shapes;
  }

  // Without a weight; all pointers off by one element; each of them alone.
  std::vector<Variant> variants(const Shape& shape) const override {
    const double eps = 1e-6, other = 1e-5;
    if (shape[1] != 1000 && shape[1] != 33 && shape[1] != 8)
      return norm_variants(*this, {{false, 0, 0, 0, eps}, {true, 1, 1, 1, other}});
    return norm_variants(*this, {{false, 0, 0, 0, eps},
                                 {true, 0, 0, 0, other},
                                 {true, 1, 1, 1, other},
                                 {true, 1, 0, 0, eps},
                                 {true, 0, 1, 0, eps},
                                 {true, 0, 0, 1, eps},
                                 {true, 4, 4, 4, eps}});
  }

  // TypedRmsNorm's rows reach 480, whose square is beyond float16; so they are what a float32 sum must be right on. For
  // float16 sums no sum of squares comes near 65504: the largest, at scale 2, is 4 (cols / 3 + 768), and rows of more
  // than 8192 columns have a quarter of it. Scale 1e-3 has squares that are subnormal, and eps matters. bfloat16 takes
  // 1e15, which float16 cannot hold.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    if (std::is_same_v<Sum, float> || tensor == kWeight) return typed_.fill(shape, tensor, seed, to);
    const float large = std::is_same_v<T, __half> ? 2.0f : 1e15f, all = shape[1] > 8192 ? 0.5f : 1.0f;
    const float scales[] = {all, 1e-3f * all, large * all, 0.25f * all, 0.0f};
    rms_norm::fill_rows<HostType<T>>(to, shape[0], shape[1], seed, scales);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer<T, Sum>>(inputs, shape[0], shape[1]);
  }

 private:
  const Operator& typed_ = TypedRmsNorm::get({type_of<T>, type_of<T>, type_of<T>});
};

}  // namespace rms_norm_precision

template <class T, class Sum>
const Operator& RmsNormPrecision<T, Sum>::get() {
  static const rms_norm_precision::Description<T, Sum> description;
  return description;
}

template struct RmsNormPrecision<float>;
template struct RmsNormPrecision<__half>;
template struct RmsNormPrecision<__half, __half>;
template struct RmsNormPrecision<__nv_bfloat16>;
template struct RmsNormPrecision<__nv_bfloat16, __nv_bfloat16>;

}  // namespace ladder
