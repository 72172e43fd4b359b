#include "common/operators/typed_rms_norm.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <list>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"

namespace ladder {
namespace typed_rms_norm {

using Op = TypedRmsNorm;

// Half the distance between neighbouring numbers of a type, relative.
double unit_roundoff(Type type) { return type == Type::float16 ? 0x1p-11 : type == Type::bfloat16 ? 0x1p-8 : 0x1p-24; }

template <class T>
float rounded_to(float value) {
  return static_cast<float>(T::value(T::from(value)));
}

struct Bounds {
  float low, high;
};

// Rounding is monotonic, so the bounds of the exact value give the bounds of the rounded one, at every later step too.
// Zero, infinity and NaN are exact. 2^-150 is what float32 loses of a subnormal number.
template <class T>
Bounds around(double value, double factor, double error) {
  const bool inexact = value != 0.0 && std::abs(value) <= DBL_MAX;
  const double slack = inexact ? std::abs(value) * error + 0x1p-150 * (1.0 + std::abs(factor)) : 0.0;
  return {rounded_to<T>(static_cast<float>(value - slack)), rounded_to<T>(static_cast<float>(value + slack))};
}

template <class T>
void answers(int64_t count, const float* kept, double rstd, const float* weight, double offset, bool llama,
             double error, const Answers& to) {
  const auto for_all = [&](auto answer) {
    for (int64_t i = 0; i < count; ++i) {
      const double normalized = static_cast<double>(kept[i]) * rstd;
      const Bounds bounds = answer(normalized, i);
      to.low[i] = static_cast<double>(bounds.low);
      to.high[i] = static_cast<double>(bounds.high);
    }
  };
  const auto factor = [=](int64_t i) { return offset + static_cast<double>(weight[i]); };
  if (!weight)
    return for_all([&](double normalized, int64_t i) {
      to.expected[i] = normalized;
      return around<T>(normalized, 0.0, error);
    });
  if (!llama)
    return for_all([&](double normalized, int64_t i) {
      to.expected[i] = normalized * factor(i);
      return around<T>(to.expected[i], factor(i), error);
    });
  for_all([&](double normalized, int64_t i) {
    to.expected[i] = normalized * factor(i);
    const Bounds first = around<T>(normalized, 0.0, error);
    const float rounded_factor = static_cast<float>(factor(i));  // float + float in float64 is exact, or nearly
    const float a = rounded_to<T>(first.low * rounded_factor), b = rounded_to<T>(first.high * rounded_factor);
    return Bounds{std::min(a, b), std::max(a, b)};
  });
}

// In float32, then rounded.
void add(float* sums, Type type, const void* residual, int64_t count) {
  with(type, [&](auto t) {
    const auto* stored = static_cast<const typename decltype(t)::Stored*>(residual);
    parallel_for(count, 1 << 16, [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        sums[i] = rounded_to<decltype(t)>(sums[i] + static_cast<float>(t.value(stored[i])));
    });
  });
}

class Answer : public Oracle {
 public:
  Answer(const Op::Types& types, const std::vector<const void*>& inputs, int64_t rows, int64_t cols)
      : types_(types),
        cols_(cols),
        error_(Op::float_error(cols)),
        kept_(rms_norm::as_floats(types.x, inputs[Op::kX], rows * cols)),
        weight_(rms_norm::as_floats(types.weight, inputs[Op::kWeight], cols)) {
    if (types.residual) add(kept_.get(), *types.residual, inputs[Op::kResidual], rows * cols);
    mean_squares_ = rms_norm::mean_squares(kept_.get(), rows, cols);
  }

  // Two roundings for llama.
  double tolerance() const override { return error_ + 2.0 * unit_roundoff(types_.y); }

  bool is_exact(int tensor) const override { return tensor == Op::kResidualOut; }
  std::string cause(int tensor, const Wrong& wrong) const override {
    return is_exact(tensor) ? "" : rms_norm::cause_of(wrong.factor);
  }

  void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const override {
    if (tensor == Op::kResidualOut) {
      for (int64_t i = 0; i < count; ++i)
        to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(kept_[first + i]);
      return;
    }
    std::vector<double> scalars = variant.scalars;
    scalars.resize(3);  // an operator that has no more than eps means the plain norm
    const double eps = static_cast<double>(static_cast<float>(scalars[Op::kEps]));
    for_parts_of_rows(first, count, cols_, [&](int64_t row, int64_t col, int64_t done, int64_t length) {
      Op::answers(types_.y, length, kept_.get() + first + done, 1.0 / std::sqrt(mean_squares_[row] + eps),
                  variant.places[Op::kWeight].absent ? nullptr : weight_.get() + col, scalars.data(), error_,
                  {to.expected + done, to.low + done, to.high + done});
    });
  }

 private:
  Op::Types types_;
  int64_t cols_;
  double error_;
  rms_norm::Floats kept_, weight_;
  std::vector<double> mean_squares_;
};

class Description : public Operator {
 public:
  explicit Description(const Op::Types& types) : types_(types) {}

  bool is_of(const Op::Types& t) const {
    return t.x == types_.x && t.weight == types_.weight && t.y == types_.y && t.residual == types_.residual;
  }

  const char* title() const override { return types_.residual ? "residual addition and RMSNorm" : "RMSNorm"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 8192, "Rows of the main input"}, {"cols", 1, 8192, "Columns of the main input"}};
  }
  std::vector<Scalar> scalars() const override { return {{"eps", 1e-6}, {"weight offset", 0.0}, {"llama", 0.0}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const auto matrix = [&](const char* name, Type type, Role role) {
      return Tensor{name, type, role, shape[0], shape[1]};
    };
    Tensor weight{"weight", types_.weight, Role::input, 1, shape[1]};
    weight.optional = weight.shared = true;
    std::vector<Tensor> all = {matrix("x", types_.x, Role::input), weight, matrix("y", types_.y, Role::output)};
    if (types_.residual) {
      all.push_back(matrix("residual", *types_.residual, Role::input));
      all.push_back(matrix("residual_out", *types_.residual, Role::output));
    }
    return all;
  }

  // As RmsNorm counts them, and the addition of the residual.
  double operations(const Shape& shape) const override {
    return (types_.residual ? 5.0 : 4.0) * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }

  // Sizes around those of warps, blocks and vectors; no rows.
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes = {{{0, 1024}}};
    for (const int64_t cols : {1, 7, 31, 32, 33, 1000, 1024, 1025, 8193})
      for (const int64_t rows : {1, 3}) shapes.push_back({{rows, cols}});
    shapes.push_back({{989, 111}});
    return shapes;
  }

  // Without a weight; both roundings, each in its own mode of everything else; in place.
  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(3, plain());
    result[0].places[Op::kWeight].absent = true;
    result[1].scalars = {1e-5, 1.0, 0.0};
    for (Place& place : result[1].places) place.offset = 1;
    result[2].scalars[Op::kLlama] = 1.0;
    if (types_.residual) result[2].places[Op::kResidualOut].same_as = Op::kResidual;
    if (types_.x == types_.y) result[2].places[Op::kY].same_as = Op::kX;
    return result;
  }

  // Where mean(x²) is near 1e-6, eps matters.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    static constexpr float scales[] = {1.0f, 1e-3f, 30.0f, 0.25f, 2.0f, 0.0f, 3.0f};
    with(tensors(shape)[tensor].type, [&](auto t) {
      using T = decltype(t);
      const uint64_t key = mix64(seed ^ 0x5eed);
      if (tensor == Op::kWeight)
        fill_each<typename T::Stored>(to, shape[1], [=](int64_t col) { return T::from(weight_like(key, col)); });
      else
        rms_norm::fill_rows<T>(to, shape[0], shape[1], seed + static_cast<uint64_t>(tensor), scales);
    });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(types_, inputs, shape[0], shape[1]);
  }

 private:
  Op::Types types_;
};

}  // namespace typed_rms_norm

// The tolerance of float32 RMSNorm, and 1 u for weight offset + weight. In place of cols it uses the longest chain of
// additions that a square passes through. At least 32 threads share a row, so this is cols / 32 in a thread, then 5 in
// a warp, and then at most 32 warps and 8 to 128 blocks, four at a time: 64 covers these.
double TypedRmsNorm::float_error(int64_t cols) {
  return rms_norm::tolerance(std::min(cols, (cols + 31) / 32 + 64)) + 0x1p-24;
}

void TypedRmsNorm::answers(Type y, int64_t count, const float* kept, double rstd, const float* weight,
                           const double* scalars, double float_error, const Answers& to) {
  const double offset = static_cast<double>(static_cast<float>(scalars[kWeightOffset]));
  with(y, [&](auto t) {
    typed_rms_norm::answers<decltype(t)>(count, kept, rstd, weight, offset, scalars[kLlama] != 0.0, float_error, to);
  });
}

const Operator& TypedRmsNorm::get(Types types) {
  static std::list<typed_rms_norm::Description> all;
  for (const auto& known : all)
    if (known.is_of(types)) return known;
  return all.emplace_back(types);
}

}  // namespace ladder
