// The gradients' oracle: its dx and dweight are the derivatives of the forward formula, by central differences in
// float64; its bounds let float32 through and reject what is wrong by a term, an offset or a row.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "common/check.h"
#include "common/operators/rms_norm_backward.h"

using namespace ladder;

namespace {

enum { kDy, kX, kWeight, kDsum, kRstd, kDx, kDweight };
constexpr Shape kShape{{5, 37, 2}};

struct Problem32 {
  Case given{RmsNormBackward::get(), kShape, 7};
  Variant variant;

  explicit Problem32(int form) : variant(given.op.variants(kShape)[form]) {}
  bool has(int place) const { return !variant.places[place].absent; }
  double at(int place, int64_t i) const { return element(Type::float32, given.inputs[place].data(), i); }
  std::vector<double> all(int place, int64_t count) const {
    std::vector<double> values(count);
    for (int64_t i = 0; i < count; ++i) values[i] = at(place, i);
    return values;
  }
  double scalar(int place) const { return static_cast<double>(static_cast<float>(variant.scalars[place])); }

  // The loss whose derivatives are asked for: the sum of dy · y, and of dsum · x.
  double loss(const std::vector<double>& x, const std::vector<double>& weight) const {
    const int64_t rows = kShape[0], cols = kShape[1];
    double sum = 0;
    for (int64_t row = 0; row < rows; ++row) {
      double squares = 0;
      for (int64_t i = 0; i < cols; ++i) squares += x[row * cols + i] * x[row * cols + i];
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(cols) + scalar(0));
      for (int64_t i = 0; i < cols; ++i) {
        const int64_t place = row * cols + i;
        sum += at(kDy, place) * x[place] * rstd * (has(kWeight) ? scalar(1) + weight[i] : 1.0);
        if (has(kDsum)) sum += at(kDsum, place) * x[place];
      }
    }
    return sum;
  }
  double derivative(std::vector<double> x, std::vector<double> weight, std::vector<double>& of, int64_t i) const {
    double& moved = &of == &given_x ? x[i] : weight[i];
    const double before = moved, step = 1e-6 * std::max(std::abs(before), 1e-3);
    moved = before + step;
    const double above = loss(x, weight);
    moved = before - step;
    return (above - loss(x, weight)) / (2.0 * step);
  }

  struct Bounds {
    double expected, low, high;
    bool allows(double value) const { return value >= low && value <= high; }
  };
  Bounds oracle(int tensor, int64_t i) const {
    Bounds b;
    given.oracle->answer(variant, tensor, i, 1, {&b.expected, &b.low, &b.high});
    return b;
  }

  std::vector<double> given_x = all(kX, kShape[0] * kShape[1]), given_weight = all(kWeight, kShape[1]);
};

}  // namespace

TEST_CASE("dx and dweight are the derivatives of the forward formula") {
  for (const int form : {0, 1, 3, 4}) {  // with a stored rstd there is no forward formula
    Problem32 p(form);
    p.variant.places[kRstd].absent = true;
    p.variant.scalars[1] = form == 3 ? 1.0 : 0.0;
    for (int64_t i = 0; i < kShape[0] * kShape[1]; ++i) {
      const double expected = p.oracle(kDx, i).expected;
      const double found = p.derivative(p.given_x, p.given_weight, p.given_x, i);
      CHECK(found == doctest::Approx(expected).epsilon(1e-4).scale(std::abs(expected) + 1e-2));
    }
    for (int64_t i = 0; i < kShape[1] && p.has(kWeight); ++i) {
      const double expected = p.oracle(kDweight, i).expected;
      const double found = p.derivative(p.given_x, p.given_weight, p.given_weight, i);
      CHECK(found == doctest::Approx(expected).epsilon(1e-6));
    }
  }
}

TEST_CASE("the bounds reject what is wrong by little") {
  const int64_t rows = kShape[0], cols = kShape[1];
  const Problem32 p(2);  // with everything, and an offset
  int dx_terms = 0, offsets = 0, rstds = 0, dropped = 0;
  for (int64_t row = 0; row < rows; ++row) {
    const double rstd = p.at(kRstd, row);
    double mean = 0;
    for (int64_t i = 0; i < cols; ++i)
      mean +=
          p.at(kDy, row * cols + i) * (1.0 + p.at(kWeight, i)) * p.at(kX, row * cols + i) / static_cast<double>(cols);
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t place = row * cols + i;
      const double g = p.at(kDy, place) * (1.0 + p.at(kWeight, i)), second = p.at(kX, place) * rstd * rstd * mean;
      const auto bounds = p.oracle(kDx, place);
      const double right = rstd * (g - second) + p.at(kDsum, place);
      CHECK(bounds.allows(rounded(Type::float32, static_cast<float>(right))));
      dx_terms += !bounds.allows(right + rstd * second * 1e-3);  // the mean's part is off by a thousandth
      offsets += !bounds.allows(right - rstd * p.at(kDy, place));
      rstds += !bounds.allows((right - p.at(kDsum, place)) * 1.0001 + p.at(kDsum, place));
    }
  }
  for (int64_t i = 0; i < cols; ++i) {
    double sum = 0, without_last = 0;
    for (int64_t row = 0; row < rows; ++row) {
      sum += p.at(kDy, row * cols + i) * p.at(kX, row * cols + i) * p.at(kRstd, row);
      if (row + 2 < rows) without_last = sum;
    }
    CHECK(p.oracle(kDweight, i).allows(rounded(Type::float32, static_cast<float>(sum))));
    dropped += !p.oracle(kDweight, i).allows(without_last);
  }
  const int64_t all = rows * cols;  // a row of dy is 0
  CHECK(dx_terms > all / 2);
  CHECK(offsets > all / 2);
  CHECK(rstds > all / 2);
  CHECK(dropped > cols / 2);
}
