#include "common/operators/rms_norm_quantized.h"

#include <algorithm>
#include <cmath>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"
#include "common/operators/typed_rms_norm.h"
#include "common/parallel.h"

namespace ladder {
namespace rms_norm_quantized {

Type type_of(Format format) { return format == Format::e4m3 ? Type::e4m3 : Type::int8; }

struct Interval {
  double low = 0, exact = 0, high = 0;
};

class Answer : public Oracle {
 public:
  Answer(const Shape& shape, const std::vector<const void*>& inputs)
      : rows_(shape[0]),
        cols_(shape[1]),
        width_(blocks_of(shape) ? kBlockColumns : shape[1]),
        format_(format_of(shape)),
        x_(rms_norm::as_floats(Type::bfloat16, inputs[kX], rows_ * cols_)),
        weight_(rms_norm::as_floats(Type::bfloat16, inputs[kWeight], cols_)),
        residual_(rms_norm::as_floats(Type::bfloat16, inputs[kResidual], rows_ * cols_)),
        scale_(static_cast<double>(*static_cast<const float*>(inputs[kScale]))),
        // Of rstd; then three products, and the division.
        error_(TypedRmsNorm::float_error(cols_) + 6.0 * 0x1p-24) {
    sums_.reset(new float[rows_ * cols_]);
    parallel_for(rows_ * cols_, 1 << 16, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums_[i] = static_cast<float>(Bfloat16::value(Bfloat16::from(x_[i] + residual_[i])));
    });
    squares_[0] = rms_norm::mean_squares(x_.get(), rows_, cols_);
    squares_[1] = rms_norm::mean_squares(sums_.get(), rows_, cols_);
  }

  double tolerance() const override { return error_ + 0x1p-4; }

  void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const override {
    const auto set = [&](int64_t i, const Interval& of) {
      to.low[i] = of.low, to.expected[i] = of.exact, to.high[i] = of.high;
    };
    if (tensor == kScales) {
      const int64_t blocks = (cols_ + width_ - 1) / width_;
      for (int64_t i = 0; i < count; ++i) {
        const int64_t place = first + i;  // a scale per row; or a row of them for each block
        set(i, scale(variant, row_of(variant, blocks == 1 ? place : place % rows_), blocks == 1 ? 0 : place / rows_));
      }
      return;
    }
    for_parts_of_rows(first, count, cols_, [&](int64_t row, int64_t col, int64_t done, int64_t length) {
      const Row of = row_of(variant, row);
      int64_t block = -1;
      Interval by;
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = col + i;
        if (tensor == kResidualOut) {
          const auto value = static_cast<double>(of.kept[at]);
          set(done + i, {value, value, value});
        } else if (tensor == kY) {
          set(done + i, y(of, of(at)));
        } else {
          if (at / width_ != block) by = scale(variant, of, block = at / width_);
          set(done + i, quotient(y(of, of(at)), by));
        }
      }
    });
  }

 private:
  template <class Type>
  static Interval each(const Interval& of) {
    const auto round = [](double x) { return Type::value(Type::from(static_cast<float>(x))); };
    return {round(of.low), round(of.exact), round(of.high)};
  }

  // kept · weight of a row, and the root that it is divided by.
  struct Row {
    const float *kept, *weight;
    double root;
    double operator()(int64_t col) const {
      return static_cast<double>(kept[col]) * (weight ? static_cast<double>(weight[col]) : 1.0);
    }
  };
  Row row_of(const Variant& variant, int64_t row) const {
    const bool adds = !variant.places[kResidual].absent;
    const double eps = static_cast<double>(static_cast<float>(variant.scalars[0]));
    return {(adds ? sums_ : x_).get() + row * cols_, variant.places[kWeight].absent ? nullptr : weight_.get(),
            std::sqrt(squares_[adds][row] + eps)};
  }
  Interval y(const Row& row, double product) const {
    const double value = product / row.root, off = std::abs(value) * error_;
    return each<Bfloat16>({value - off, value, value + off});
  }
  // The largest |y| is that of the largest product.
  Interval scale(const Variant& variant, const Row& row, int64_t block) const {
    if (!variant.places[kScale].absent) return {scale_, scale_, scale_};
    double product = 0;
    for (int64_t col = block * width_; col < std::min(cols_, (block + 1) * width_); ++col)
      product = std::max(product, std::abs(row(col)));
    const Interval most = y(row, product);
    const bool is_float = format_ == Format::e4m3;
    const float largest = is_float ? kLargest<Format::e4m3> : kLargest<Format::int8>;
    const float least = is_float ? kLeastScale<Format::e4m3> : kLeastScale<Format::int8>;
    const auto of = [=](double m) { return std::max(m / static_cast<double>(largest), static_cast<double>(least)); };
    return {of(most.low) * (1.0 - 0x1p-23), of(most.exact), of(most.high) * (1.0 + 0x1p-23)};
  }
  Interval quotient(const Interval& value, const Interval& by) const {
    const auto away = [&](double x) { return x / (x < 0 ? by.high : by.low); };
    const auto near = [&](double x) { return x / (x < 0 ? by.low : by.high); };
    const double wide = 4.0 * 0x1p-24;
    const double low = near(value.low), high = away(value.high);
    const Interval all = {low - wide * std::abs(low), value.exact / by.exact, high + wide * std::abs(high)};
    return format_ == Format::e4m3 ? each<E4m3>(all) : each<Int8>(all);
  }

  int64_t rows_, cols_, width_;
  Format format_;
  rms_norm::Floats x_, weight_, residual_, sums_;
  double scale_;
  std::vector<double> squares_[2];  // their means: of x, and of x + residual
  double error_;
};

class Description : public Operator {
 public:
  const char* title() const override { return "RMSNorm to 8 bits"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 8192, "Rows of the main input"},
            {"cols", 1, 4096, "Columns of the main input"},
            {"format", 0, 0, "Format of the results", {"e4m3", "int8", "e4m3-blocks", "int8-blocks"}}};
  }
  std::vector<ladder::Scalar> scalars() const override { return {{"eps", 1e-6}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const auto matrix = [&](const char* name, Role role, Type type = Type::bfloat16) {
      return Tensor{name, type, role, shape[0], shape[1]};
    };
    const int64_t blocks = blocks_of(shape) ? (shape[1] + kBlockColumns - 1) / kBlockColumns : 1;
    std::vector<Tensor> all = {matrix("x", Role::input),
                               {"weight", Type::bfloat16, Role::input, 1, shape[1]},
                               matrix("residual", Role::input),
                               vector_tensor("scale", Type::float32, Role::input, 1),
                               matrix("q", Role::output, type_of(format_of(shape))),
                               {"scales", Type::float32, Role::output, blocks, shape[0]},
                               matrix("residual-out", Role::output),
                               matrix("y", Role::output),
                               matrix("scratch", Role::scratch)};
    for (const int place : {kWeight, kResidual, kScale, kScales, kResidualOut, kY}) all[place].optional = true;
    all[kWeight].shared = all[kScratch].shared = true;
    return all;
  }

  // Of each element x² and its addition, two products, the largest, and the product with 1 / scale.
  double operations(const Shape& shape) const override {
    return 6.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }

  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes = {{{0, 1024, 0}}, {{1, 1, 1}}, {{33, 40, 0}}, {{257, 264, 1}}};
    for (const int64_t format : {0, 1, 2, 3})
      for (const int64_t cols : {7, 127, 1000, 1025}) shapes.push_back({{3, cols, format}});
    for (const int64_t cols : {8191, 8192, 8193}) shapes.push_back({{2, cols, cols % 2}});
    return shapes;
  }

  // As it is called most; with a residual that is kept; all outputs, without a weight; a given scale; off by an
  // element.
  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(5, plain());
    const auto give = [](Variant& variant, std::initializer_list<int> places) {
      for (const int place : places) variant.places[place].absent = false;
    };
    give(result[1], {kResidual, kResidualOut});
    result[1].scalars[0] = 1e-5;
    give(result[2], {kResidual, kResidualOut, kY});
    result[2].places[kWeight].absent = true;
    give(result[3], {kScale});
    result[3].places[kScales].absent = true;
    give(result[4], {kY});
    for (const int place : {kX, kWeight, kQ, kScales, kY}) result[4].places[place].offset = 1;
    return result;
  }

  // Rows of different scale, one of zeros, and columns far larger than the others; where mean(x²) is near 1e-6, eps
  // matters. The given scale saturates the largest numbers.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    static constexpr float scales[] = {1.0f, 1e-3f, 30.0f, 0.25f, 2.0f, 0.0f, 3.0f};
    const uint64_t key = mix64(seed ^ 0x71383871u) + static_cast<uint64_t>(tensor);
    if (tensor == kScale)
      *static_cast<float*>(to) = 0.011f;
    else if (tensor == kWeight)
      fill_each<Bfloat16::Stored>(to, shape[1], [=](int64_t col) { return Bfloat16::from(weight_like(key, col)); });
    else
      rms_norm::fill_rows<Bfloat16>(to, shape[0], shape[1], key, scales);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(shape, inputs);
  }

  Variant plain() const override {
    Variant variant = Operator::plain();
    for (const int place : {kResidual, kScale, kResidualOut, kY}) variant.places[place].absent = true;
    return variant;
  }
};

}  // namespace rms_norm_quantized

const Operator& RmsNormQuantized::get() {
  static const rms_norm_quantized::Description description;
  return description;
}

}  // namespace ladder
