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

  // What `row` adds to the loss whose derivatives are asked for: the sum of dy · y, and of dsum · x.
  double loss(int64_t row, const std::vector<double>& x, const std::vector<double>& weight) const {
    const int64_t cols = kShape[1];
    const double rstd = 1.0 / scale(row, x);
    double sum = 0;
    for (int64_t i = 0; i < cols; ++i) {
      const int64_t place = row * cols + i;
      sum += at(kDy, place) * x[place] * rstd * (has(kWeight) ? scalar(1) + weight[i] : 1.0);
      if (has(kDsum)) sum += at(kDsum, place) * x[place];
    }
    return sum;
  }
  double scale(int64_t row, const std::vector<double>& x) const {  // 1 / rstd
    double squares = 0;
    for (int64_t i = row * kShape[1]; i < (row + 1) * kShape[1]; ++i) squares += x[i] * x[i];
    return std::sqrt(squares / static_cast<double>(kShape[1]) + scalar(0));
  }
  // Central differences, with respect to an element of x or, summed over the rows, of the weight.
  double by_x(int64_t i) const {
    const int64_t row = i / kShape[1];
    const double step = 1e-5 * scale(row, x);
    std::vector<double> above = x, below = x;
    above[i] += step;
    below[i] -= step;
    return (loss(row, above, weight) - loss(row, below, weight)) / (2.0 * step);
  }
  double by_weight(int64_t i) const {
    std::vector<double> above = weight, below = weight;
    above[i] += 1.0;  // y is linear in the weight
    below[i] -= 1.0;
    double sum = 0;
    for (int64_t row = 0; row < kShape[0]; ++row) sum += (loss(row, x, above) - loss(row, x, below)) / 2.0;
    return sum;
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

  std::vector<double> x = all(kX, kShape[0] * kShape[1]), weight = all(kWeight, kShape[1]);
};

}  // namespace

TEST_CASE("dx and dweight are the derivatives of the forward formula") {
  for (const int form : {0, 1, 3, 4}) {  // with a stored rstd there is no forward formula
    Problem32 p(form);
    p.variant.places[kRstd].absent = true;
    p.variant.scalars[1] = form == 3 ? 1.0 : 0.0;
    for (int64_t i = 0; i < kShape[0] * kShape[1]; ++i) {
      const double expected = p.oracle(kDx, i).expected;
      CHECK(p.by_x(i) == doctest::Approx(expected).epsilon(1e-6).scale(1e-3 + std::abs(expected)));
    }
    for (int64_t i = 0; i < kShape[1] && p.has(kWeight); ++i) {
      const double expected = p.oracle(kDweight, i).expected;
      CHECK(p.by_weight(i) == doctest::Approx(expected).epsilon(1e-6));
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
  CHECK(dx_terms > all / 8);        // where x is small, the mean does not matter
  CHECK(offsets > all / 2);
  CHECK(rstds > all / 2);
  CHECK(dropped > cols / 2);
}
