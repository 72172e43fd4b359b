// Inputs, oracle, tolerance, comparison and model: what decides whether a kernel is right.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/compare.h"
#include "common/device_buffer.h"
#include "common/inputs.h"
#include "common/reference.h"
#include "common/roofline.h"

using namespace ladder;

namespace {

struct Input {
  Input(int64_t r, int64_t c, bool with_weight, uint64_t seed = 1)
      : rows(r), cols(c), x(r * c), w(with_weight ? c : 0) {
    fill_input(x.data(), rows, cols, seed);
    if (with_weight) fill_weight(w.data(), cols, seed);
    mean_square = mean_squares(x.data(), rows, cols);
  }
  Reference reference(float eps = 1e-6f) const {
    return {x.data(), w.empty() ? nullptr : w.data(), mean_square.data(), rows, cols, eps};
  }
  int64_t rows, cols;
  std::vector<float> x, w;
  std::vector<double> mean_square;
};

// A kernel's arithmetic in float32: one long sum per row, the least accurate order there is. The hooks plant faults.
struct Float32 {
  std::function<float(float mean, float eps)> rstd = [](float mean, float eps) { return 1.0f / std::sqrt(mean + eps); };
  int64_t ignored_at_the_end = 0, count_error = 0;
  bool use_weight = true;
  bool square = true;

  std::vector<float> operator()(const Input& in, float eps = 1e-6f) const {
    std::vector<float> y(in.x.size());
    for (int64_t row = 0; row < in.rows; ++row) {
      const float* x = &in.x[row * in.cols];
      float sum = 0;
      for (int64_t i = 0; i < in.cols - ignored_at_the_end; ++i) sum += square ? x[i] * x[i] : x[i];
      const float mean = sum / static_cast<float>(in.cols + count_error), r = rstd(square ? mean : mean * mean, eps);
      for (int64_t i = 0; i < in.cols; ++i)
        y[row * in.cols + i] = x[i] * r * (use_weight && !in.w.empty() ? in.w[i] : 1.0f);
    }
    return y;
  }
};

int64_t wrong(const Input& in, const Float32& kernel) {
  const std::vector<float> y = kernel(in);
  return compare(in.reference(), y.data()).wrong;
}

}  // namespace

TEST_CASE("inputs are the same bits everywhere and differ by seed") {
  const Input a(9, 1000, true, 1), b(9, 1000, true, 1), c(9, 1000, true, 2);
  CHECK(a.x == b.x);
  CHECK(a.x != c.x);
  CHECK(a.w != c.w);
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const float value : a.x) hash = (hash ^ bits_of(value)) * 1099511628211u;
  for (const float value : a.w) hash = (hash ^ bits_of(value)) * 1099511628211u;
  CHECK(hash == 10149105516916812251u);
}

TEST_CASE("inputs do not depend on how many threads fill them") {
  // Large enough for all cores; the same numbers come out when the last row is filled as part of a smaller matrix.
  const int64_t cols = 1001;
  const Input large(300, cols, false), small(3, cols, false);
  CHECK(std::equal(small.x.begin(), small.x.end(), large.x.begin()));
}

TEST_CASE("inputs make each term of the formula matter") {
  const Input in(16, 8193, true);
  CHECK(in.mean_square[0] > 0.5);
  CHECK(in.mean_square[1] < 3e-6);  // eps matters
  CHECK(in.mean_square[1] > 1e-7);
  CHECK(in.mean_square[2] > 1e5);
  CHECK(in.mean_square[5] == 0.0);
  CHECK(std::isfinite(in.reference().rstd(5)));
  for (const int64_t row : {0, 1, 2, 3, 4, 6, 7}) {
    const double heavy = in.x[row * in.cols + in.cols - 1];
    CHECK(heavy * heavy > 0.03 * in.mean_square[row] * static_cast<double>(in.cols));
  }
  int negative = 0;
  for (const float w : in.w) {
    CHECK(std::abs(w) >= 0.5f);
    CHECK(std::abs(w) <= 1.5f);
    negative += w < 0;
  }
  CHECK(negative > 3000);
  CHECK(negative < 5000);
}

TEST_CASE("the oracle is the formula") {
  const Input in(11, 37, true);
  const Reference reference = in.reference(1e-5f);
  for (int64_t row = 0; row < in.rows; ++row) {
    long double sum = 0;
    for (int64_t i = 0; i < in.cols; ++i)
      sum += static_cast<long double>(in.x[row * in.cols + i]) * in.x[row * in.cols + i];
    const long double root = std::sqrt(sum / in.cols + static_cast<long double>(1e-5f));
    for (int64_t i = 0; i < in.cols; ++i) {
      const double expected = static_cast<double>(in.x[row * in.cols + i] / root * in.w[i]);
      CHECK(reference.at(row, i) == doctest::Approx(expected).epsilon(1e-14));
    }
  }
}

TEST_CASE("float32 arithmetic passes at every length, in the worst order") {
  for (const int64_t cols : {1, 2, 7, 33, 1000, 1025, 8193})
    for (const uint64_t seed : {1, 2, 3})
      for (const bool weight : {false, true}) {
        CAPTURE(cols);
        const Input in(17, cols, weight, seed);
        CHECK(wrong(in, {}) == 0);
      }
  CHECK(wrong(Input(1, 1048577, true), {}) == 0);
}

TEST_CASE("the tolerance grows with the length and stays tight") {
  CHECK(tolerance(1) == doctest::Approx(8 * 0x1p-24));
  for (int64_t cols = 1; cols < 100000; cols = cols * 5 / 4 + 1) CHECK(tolerance(cols) < tolerance(cols * 5 / 4 + 1));
  CHECK(tolerance(8192) < 1.2e-5);
  CHECK(tolerance(int64_t{1} << 40) < 0.2);
}

TEST_CASE("faults of a few parts in a hundred thousand fail") {
  for (const int64_t cols : {1000, 8193}) {
    CAPTURE(cols);
    const Input in(6, cols, true);
    Float32 kernel;
    kernel.ignored_at_the_end = 1;
    CHECK(wrong(in, kernel) > 4 * cols);
    kernel = {};
    kernel.count_error = 1;
    CHECK(wrong(in, kernel) > 3 * cols);
    kernel = {};
    kernel.use_weight = false;
    CHECK(wrong(in, kernel) > 4 * cols);
    kernel = {};
    kernel.square = false;
    CHECK(wrong(in, kernel) > 4 * cols);
    kernel = {};
    kernel.rstd = [](float mean, float eps) { return 1.0f / (std::sqrt(mean) + eps); };
    CHECK(wrong(in, kernel) > cols);
    kernel.rstd = [](float mean, float) { return 1.0f / std::sqrt(mean); };
    CHECK(wrong(in, kernel) > cols);
    kernel.rstd = [](float mean, float) { return 1.0f / std::sqrt(mean + 1e-5f); };
    CHECK(wrong(in, kernel) > cols);
  }
}

TEST_CASE("comparison names what is wrong") {
  const Input in(300, 1000, false);  // several threads' worth
  const Reference reference = in.reference();
  std::vector<float> y = Float32{}(in);
  REQUIRE(compare(reference, y.data()).wrong == 0);
  CHECK(compare(reference, y.data()).elements == 300000);
  CHECK(compare(reference, y.data()).worst_error < compare(reference, y.data()).tolerance);

  SUBCASE("one element") {
    y[123456] *= 1.001f;
    const Comparison c = compare(reference, y.data());
    CHECK(c.wrong == 1);
    CHECK(c.first == 123456);
    CHECK(c.worst == 123456);
    CHECK(c.worst_error == doctest::Approx(0.001).epsilon(0.01));
    CHECK(describe(c, reference, y.data()).find("first at (row 123, col 456), expected") != std::string::npos);
  }
  SUBCASE("NaN is wrong and is the worst") {
    y[7] *= 2.0f;
    y[200007] = std::numeric_limits<float>::quiet_NaN();
    y[250000] = std::numeric_limits<float>::infinity();
    const Comparison c = compare(reference, y.data());
    CHECK(c.wrong == 3);
    CHECK(c.unwritten == 0);
    CHECK(c.first == 7);
    CHECK(c.worst == 200007);
    CHECK(describe(c, reference, y.data()).find("got NaN") != std::string::npos);
  }
  SUBCASE("every element NaN") {
    std::fill(y.begin(), y.end(), -std::numeric_limits<float>::quiet_NaN());
    CHECK(compare(reference, y.data()).wrong == 300000);
  }
  SUBCASE("the first in the order of the matrix, the worst by size") {
    y[10] *= 1.5f;
    y[299999] *= 3.0f;
    const Comparison c = compare(reference, y.data());
    CHECK(c.first == 10);
    CHECK(c.worst == 299999);
  }
  SUBCASE("unwritten elements") {
    std::memcpy(&y[42], &kPoison, sizeof kPoison);
    const Comparison c = compare(reference, y.data());
    CHECK(c.unwritten == 1);
    CHECK(describe(c, reference, y.data()).find("never written") != std::string::npos);
  }
  SUBCASE("zero must be zero, of either sign") {
    REQUIRE(reference.at(5, 3) == 0.0);
    y[5003] = -0.0f;
    CHECK(compare(reference, y.data()).wrong == 0);
    y[5003] = 1e-30f;
    CHECK(compare(reference, y.data()).wrong == 1);
  }
  SUBCASE("the sign counts") {
    y[999] = -y[999];
    CHECK(compare(reference, y.data()).wrong == 1);
  }
}

TEST_CASE("an error at the tolerance's edge") {
  const std::vector<float> x = {1.0f}, w = {1.0f};
  const std::vector<double> mean_square = {1.0};
  const Reference reference{x.data(), w.data(), mean_square.data(), 1, 1, 0.0f};
  const float below = 1.0f + 3 * 0x1p-23f, above = 1.0f + 5 * 0x1p-23f;  // 6 u and 10 u against 8 u
  CHECK(compare(reference, &below).wrong == 0);
  CHECK(compare(reference, &above).wrong == 1);
}

TEST_CASE("sectors of a warp's load") {
  CHECK(sectors_per_request({2, 4, true}, 8192) == 32);
  CHECK(sectors_per_request({2, 4, true}, 8) == 32);
  CHECK(sectors_per_request({2, 4, true}, 4) == 16);
  CHECK(sectors_per_request({2, 4, true}, 1) == 4);
  CHECK(sectors_per_request({2, 4, false}, 8192) == 4);
  CHECK(sectors_per_request({2, 16, false}, 8192) == 16);
}

TEST_CASE("bytes") {
  CHECK(operator_bytes(8192, 8192, false) == 536870912.0);
  CHECK(operator_bytes(8192, 8192, true) == 536870912.0 + 32768.0);
  CHECK(operator_bytes(int64_t{1} << 32, 8192, false) == 281474976710656.0);
  CHECK(moved_bytes_per_element({1, 4, false}) == 8.0);
  CHECK(moved_bytes_per_element({2, 16, false}) == 12.0);
}
