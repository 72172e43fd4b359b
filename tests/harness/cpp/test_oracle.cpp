// Inputs, oracles, tolerances and the comparison: what decides whether a kernel is right.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "common/check.h"
#include "common/operators/add.h"
#include "common/operators/copy.h"
#include "common/operators/group_sum.h"
#include "common/operators/rms_norm.h"
#include "common/operators/rms_norm_vector.h"
#include "common/operators/sum.h"
#include "common/types.h"

using namespace ladder;

namespace {

constexpr int kInput = 0, kWeight = 1, kOutput = 2;

// A problem of RMSNorm, its answers, and an output to compare with them.
struct Norm {
  Norm(int64_t rows, int64_t cols, bool with_weight, uint64_t seed = 1, double eps = 1e-6)
      : rows(rows), cols(cols), given(RmsNorm::get(), {{rows, cols}}, seed), variant(RmsNorm::get().plain()) {
    variant.places[kWeight].absent = !with_weight;
    variant.scalars[0] = eps;
  }
  const float* x(int64_t row = 0) const {
    return reinterpret_cast<const float*>(given.inputs[kInput].data()) + row * cols;
  }
  const float* w() const { return reinterpret_cast<const float*>(given.inputs[kWeight].data()); }
  double expected(int64_t row, int64_t col) const {
    double exact, low, high;
    given.oracle->answer(variant, kOutput, row * cols + col, 1, {&exact, &low, &high});
    return exact;
  }
  Output output(const std::vector<float>& y) const {
    return {*given.oracle, variant, given.tensors[kOutput], kOutput, y.data()};
  }
  Comparison compared(const std::vector<float>& y) const { return compare(output(y)); }
  std::string described(const std::vector<float>& y) const { return describe(compared(y), output(y)); }

  int64_t rows, cols;
  Case given;
  Variant variant;
};

// A kernel's arithmetic in float32: one long sum per row, the least accurate order there is. The hooks plant faults.
struct Float32Kernel {
  std::function<float(float mean, float eps)> rstd = [](float mean, float eps) { return 1.0f / std::sqrt(mean + eps); };
  int64_t ignored_at_the_end = 0, count_error = 0;
  bool use_weight = true;
  bool square = true;

  std::vector<float> operator()(const Norm& in) const {
    std::vector<float> y(in.rows * in.cols);
    const bool weighted = use_weight && !in.variant.places[kWeight].absent;
    for (int64_t row = 0; row < in.rows; ++row) {
      const float* x = in.x(row);
      float sum = 0;
      for (int64_t i = 0; i < in.cols - ignored_at_the_end; ++i) sum += square ? x[i] * x[i] : x[i];
      const float mean = sum / static_cast<float>(in.cols + count_error);
      const float r = rstd(square ? mean : mean * mean, static_cast<float>(in.variant.scalars[0]));
      for (int64_t i = 0; i < in.cols; ++i) y[row * in.cols + i] = x[i] * r * (weighted ? in.w()[i] : 1.0f);
    }
    return y;
  }
};

int64_t wrong(const Norm& in, const Float32Kernel& kernel) { return in.compared(kernel(in)).wrong; }

double mean_square(const Norm& in, int64_t row) {
  double sum = 0;
  for (int64_t i = 0; i < in.cols; ++i) sum += static_cast<double>(in.x(row)[i]) * static_cast<double>(in.x(row)[i]);
  return sum / static_cast<double>(in.cols);
}

std::vector<float> drawn(int64_t rows, int64_t cols, int tensor, uint64_t seed) {
  std::vector<float> values(tensor == kInput ? rows * cols : cols);
  RmsNorm::get().fill({{rows, cols}}, tensor, seed, values.data());
  return values;
}

}  // namespace

TEST_CASE("inputs are the same bits everywhere and differ by seed") {
  const std::vector<float> x = drawn(9, 1000, kInput, 1), w = drawn(9, 1000, kWeight, 1);
  CHECK(x == drawn(9, 1000, kInput, 1));
  CHECK(x != drawn(9, 1000, kInput, 2));
  CHECK(w != drawn(9, 1000, kWeight, 2));
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (const float value : x) hash = (hash ^ bits_as<uint32_t>(value)) * 1099511628211u;
  for (const float value : w) hash = (hash ^ bits_as<uint32_t>(value)) * 1099511628211u;
  CHECK(hash == 10149105516916812251u);
}

TEST_CASE("inputs do not depend on how many threads fill them") {
  // Large enough for all cores; the same numbers come out when the last row is filled as part of a smaller matrix.
  const std::vector<float> large = drawn(300, 1001, kInput, 1), small = drawn(3, 1001, kInput, 1);
  CHECK(std::equal(small.begin(), small.end(), large.begin()));
}

TEST_CASE("inputs make each term of the formula matter") {
  const Norm in(16, 8193, true);
  CHECK(mean_square(in, 0) > 0.5);
  CHECK(mean_square(in, 1) < 3e-6);  // eps matters
  CHECK(mean_square(in, 1) > 1e-7);
  CHECK(mean_square(in, 2) > 1e5);
  CHECK(mean_square(in, 5) == 0.0);
  CHECK(in.expected(5, 3) == 0.0);
  for (const int64_t row : {0, 1, 2, 3, 4, 6, 7}) {
    const double heavy = static_cast<double>(in.x(row)[in.cols - 1]);
    CHECK(heavy * heavy > 0.03 * mean_square(in, row) * static_cast<double>(in.cols));
  }
  int negative = 0;
  for (int64_t i = 0; i < in.cols; ++i) {
    CHECK(std::abs(in.w()[i]) >= 0.5f);
    CHECK(std::abs(in.w()[i]) <= 1.5f);
    negative += in.w()[i] < 0;
  }
  CHECK(negative > 3000);
  CHECK(negative < 5000);
}

TEST_CASE("the oracle is the formula") {
  const Norm in(11, 37, true, 1, 1e-5);
  for (int64_t row = 0; row < in.rows; ++row) {
    long double sum = 0;
    for (int64_t i = 0; i < in.cols; ++i) sum += static_cast<long double>(in.x(row)[i]) * in.x(row)[i];
    const long double root = std::sqrt(sum / in.cols + static_cast<long double>(1e-5f));
    for (int64_t i = 0; i < in.cols; ++i) {
      const double expected = static_cast<double>(in.x(row)[i] / root * in.w()[i]);
      CHECK(in.expected(row, i) == doctest::Approx(expected).epsilon(1e-14));
    }
  }
}

TEST_CASE("float32 arithmetic passes at every length, in the worst order") {
  for (const int64_t cols : {1, 2, 7, 33, 1000, 1025, 8193})
    for (const uint64_t seed : {1, 2, 3})
      for (const bool weight : {false, true}) {
        CAPTURE(cols);
        CHECK(wrong(Norm(17, cols, weight, seed), {}) == 0);
      }
  CHECK(wrong(Norm(1, 1048577, true), {}) == 0);
}

TEST_CASE("the tolerance grows with the length and stays tight") {
  const auto tolerance = [](int64_t cols) {
    return RmsNorm::get().oracle({{0, cols}}, {nullptr, nullptr, nullptr})->tolerance();
  };
  CHECK(tolerance(1) == doctest::Approx(8 * 0x1p-24));
  for (int64_t cols = 1; cols < 100000; cols = cols * 5 / 4 + 1) CHECK(tolerance(cols) < tolerance(cols * 5 / 4 + 1));
  CHECK(tolerance(8192) < 1.2e-5);
  CHECK(tolerance(int64_t{1} << 40) < 0.2);
}

TEST_CASE("faults of a few parts in a hundred thousand fail") {
  for (const int64_t cols : {1000, 8193}) {
    CAPTURE(cols);
    const Norm in(6, cols, true);
    Float32Kernel kernel;
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
  const Norm in(300, 1000, false);  // several threads' worth
  std::vector<float> y = Float32Kernel{}(in);
  REQUIRE(in.compared(y).wrong == 0);
  CHECK(in.compared(y).elements == 300000);
  CHECK(in.compared(y).worst_of_all < 1.0);

  SUBCASE("one element") {
    y[123456] *= 1.001f;
    const Comparison c = in.compared(y);
    CHECK(c.wrong == 1);
    CHECK(c.first == 123456);
    CHECK(c.worst == 123456);
    CHECK(c.worst_of_all * in.given.oracle->tolerance() == doctest::Approx(0.001).epsilon(0.01));
    CHECK(in.described(y).find("first at (row 123, col 456), expected") != std::string::npos);
  }
  SUBCASE("NaN is wrong and is the worst") {
    y[7] *= 2.0f;
    y[200007] = std::numeric_limits<float>::quiet_NaN();
    y[250000] = std::numeric_limits<float>::infinity();
    const Comparison c = in.compared(y);
    CHECK(c.wrong == 3);
    CHECK(c.unwritten == 0);
    CHECK(c.first == 7);
    CHECK(c.worst == 200007);
    CHECK(in.described(y).find("got NaN") != std::string::npos);
  }
  SUBCASE("every element NaN") {
    std::fill(y.begin(), y.end(), -std::numeric_limits<float>::quiet_NaN());
    CHECK(in.compared(y).wrong == 300000);
  }
  SUBCASE("the first in the order of the matrix, the worst by size") {
    y[10] *= 1.5f;
    y[299999] *= 3.0f;
    const Comparison c = in.compared(y);
    CHECK(c.first == 10);
    CHECK(c.worst == 299999);
  }
  SUBCASE("where wrong elements lie, if that is regular") {
    const auto with = [&](auto is_wrong, float value) {
      std::vector<float> changed = y;
      for (int64_t i = 0; i < 300000; ++i)
        if (is_wrong(i / 1000, i % 1000)) changed[i] = value;
      return in.described(changed);
    };
    const auto says = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    const float never = bits_as<float>(poison_of(Type::float32));
    CHECK(
        says(with([](auto, auto col) { return col > 0; }, 9e9f), "; only column 0 is right: is the result in lane 0"));
    CHECK(says(with([](auto, auto col) { return col >= 32; }, 9e9f),
               "; only columns 0 to 31 are right: is the result in warp 0"));
    CHECK(says(with([](auto, auto col) { return col >= 256; }, 9e9f),
               "; only columns 0 to 255 are right, those of 8 warps"));
    CHECK(says(with([](auto, auto col) { return col % 2; }, 9e9f), "; every second column is wrong"));
    CHECK(says(with([](auto, auto col) { return col % 32 > 0; }, 9e9f),
               "; of every 32 columns only the first is right, that of lane 0"));
    CHECK(says(with([](auto, auto col) { return col % 256 > 31; }, 9e9f),
               "; of every 256 columns only the first 32 are right, those of warp 0"));
    CHECK(says(with([](auto, auto col) { return col % 4 == 1; }, 9e9f),
               "; of every 4 columns number 1, counted from 0, is wrong"));
    CHECK(says(with([](auto, auto col) { return col >= 996; }, never),
               "; columns 996 to 999, at the end, were never written: what is left"));
    CHECK(says(with([](auto, auto col) { return col >= 256; }, never),
               "; only columns 0 to 255 were written: are there threads"));
    CHECK(says(with([](auto row, auto) { return row == 299; }, 9e9f), "; only row 299, at the end, is wrong"));
    CHECK(says(with([](auto row, auto) { return row == 0; }, 9e9f), "; only row 0 is wrong"));
    CHECK(says(with([](auto row, auto) { return row > 0; }, 9e9f), "; only row 0 is right"));
    CHECK(says(with([](auto row, auto col) { return row * 1000 + col == 7; }, std::nanf("")),
               "; outputs and scratch memory hold NaN before"));
    const std::string irregular = with([](auto row, auto col) { return row == 3 && col == 5; }, 9e9f);
    CHECK(irregular.substr(irregular.rfind("; ")).find("; relative tolerance") == 0);
    std::vector<float> halves = y;
    for (float& value : halves) value *= 0.5f;
    CHECK(says(in.described(halves),
               "; all of them are 0.5 times what is right, as with a sum of squares that is 4 times"));
    for (float& value : halves) value *= 1e-6f;
    CHECK(says(in.described(halves), "times what it should be: is something added that has no value yet?"));
  }
  SUBCASE("unwritten elements") {
    y[42] = bits_as<float>(poison_of(Type::float32));
    const Comparison c = in.compared(y);
    CHECK(c.unwritten == 1);
    CHECK(in.described(y).find("never written") != std::string::npos);
  }
  SUBCASE("zero must be zero, of either sign") {
    REQUIRE(in.expected(5, 3) == 0.0);
    y[5003] = -0.0f;
    CHECK(in.compared(y).wrong == 0);
    y[5003] = 1e-30f;
    CHECK(in.compared(y).wrong == 1);
  }
  SUBCASE("the sign counts") {
    y[999] = -y[999];
    CHECK(in.compared(y).wrong == 1);
  }
  SUBCASE("a sample looks at whole rows, the first and the last among them") {
    y[999] = y[299999] = 1e9f;
    y[150 * 1000] = 1e9f;
    CHECK(compare(in.output(y), 3).elements == 3000);
    CHECK(compare(in.output(y), 2).wrong == 2);
    CHECK(compare(in.output(y), 1000).wrong == 3);
  }
}

namespace {

// An oracle whose answers a test chooses.
struct Fixed : Oracle {
  double expected, low, high;
  bool exact = false;
  Fixed(double expected, double low, double high, bool exact = false)
      : expected(expected), low(low), high(high), exact(exact) {}
  double tolerance() const override { return 1e-3; }
  bool is_exact(int) const override { return exact; }
  void answer(const Variant&, int, int64_t, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i) to.expected[i] = expected, to.low[i] = low, to.high[i] = high;
  }
};

template <class T>
int64_t wrong_one(const Fixed& oracle, Type type, T got) {
  const Tensor tensor{"y", type, Role::output, 1, 1};
  return compare({oracle, {}, tensor, 0, &got}).wrong;
}

}  // namespace

TEST_CASE("bounds are part of what is right, in every type") {
  const double nan = std::nan("");
  CHECK(wrong_one(Fixed(1, 0.5, 1.5), Type::float32, 0.5f) == 0);
  CHECK(wrong_one(Fixed(1, 0.5, 1.5), Type::float32, 1.5000001f) == 1);
  CHECK(wrong_one(Fixed(1, 1, 1), Type::float16, uint16_t{0x3c00}) == 0);
  CHECK(wrong_one(Fixed(1, 1, 1), Type::float16, uint16_t{0x3c01}) == 1);
  CHECK(wrong_one(Fixed(-2, -2, -2), Type::bfloat16, uint16_t{0xc000}) == 0);
  CHECK(wrong_one(Fixed(-2, -2, -2), Type::bfloat16, uint16_t{0xc001}) == 1);
  CHECK(wrong_one(Fixed(3e9, 3e9, 3e9), Type::uint32, uint32_t{3000000000u}) == 0);
  CHECK(wrong_one(Fixed(3e9, 3e9, 3e9), Type::uint32, uint32_t{2999999999u}) == 1);
  CHECK(wrong_one(Fixed(nan, nan, nan), Type::float32, std::nanf("")) == 0);
  CHECK(wrong_one(Fixed(nan, nan, nan), Type::float32, 1.0f) == 1);
  CHECK(wrong_one(Fixed(nan, nan, nan), Type::float16, static_cast<uint16_t>(poison_of(Type::float16))) == 1);
  CHECK(wrong_one(Fixed(0, 0, 0), Type::float32, -0.0f) == 0);
  CHECK(wrong_one(Fixed(0, 0, 0, true), Type::float32, -0.0f) == 1);
}

TEST_CASE("elements of every type are read and rounded as the formats say") {
  CHECK(rounded(Type::float16, 1.0f + 0x1p-11f) == 1.0f);  // a tie goes to even
  CHECK(rounded(Type::float16, 1.0f + 3 * 0x1p-11f) == 1.0f + 0x1p-9f);
  CHECK(std::isinf(rounded(Type::float16, 65520.0f)));
  CHECK(rounded(Type::float16, 65519.0f) == 65504.0f);
  CHECK(rounded(Type::bfloat16, 1.0f + 0x1p-8f) == 1.0f);
  CHECK(rounded(Type::bfloat16, 1.0f + 3 * 0x1p-8f) == 1.0f + 0x1p-6f);
  CHECK(std::isnan(rounded(Type::bfloat16, std::nanf(""))));
  CHECK(rounded(Type::float32, 0.1f) == 0.1f);
}

TEST_CASE("an error at the tolerance's edge") {
  const Norm in(1, 1, false, 1, 0.0);
  const double exact = in.expected(0, 0);  // 1 or -1
  REQUIRE(std::abs(exact) == 1.0);
  const float below = static_cast<float>(exact) * (1.0f + 3 * 0x1p-23f);  // 6 u and 10 u against 8 u
  const float above = static_cast<float>(exact) * (1.0f + 5 * 0x1p-23f);
  CHECK(in.compared({below}).wrong == 0);
  CHECK(in.compared({above}).wrong == 1);
}

TEST_CASE("sums, and what they may be off by") {
  const Case c(Sum::get(), {{100003}}, 1);
  const auto* x = reinterpret_cast<const float*>(c.inputs[0].data());
  float in_order = 0, without_the_last = 0, short_of_a_few = 0;
  for (int64_t i = 0; i < 100003; ++i) {
    in_order += x[i];
    without_the_last += i < 100002 ? x[i] : 0.0f;
    short_of_a_few += i % 1000 < 990 ? x[i] : 0.0f;
  }
  const Variant variant = Sum::get().plain();
  const auto wrong_sums = [&](float got) { return compare({*c.oracle, variant, c.tensors[1], 1, &got}).wrong; };
  CHECK(wrong_sums(in_order) == 0);
  CHECK(wrong_sums(without_the_last) == 1);
  CHECK(wrong_sums(short_of_a_few) == 1);
  const Case nothing(Sum::get(), {{0}}, 1);
  const float zero = 0;
  CHECK(compare({*nothing.oracle, variant, nothing.tensors[1], 1, &zero}).wrong == 0);
}

TEST_CASE("a sum of two floats is right to the bit, or wrong") {
  const Case c(Add::get(), {{5000}}, 1);
  const auto* a = reinterpret_cast<const float*>(c.inputs[0].data());
  const auto* b = reinterpret_cast<const float*>(c.inputs[1].data());
  std::vector<float> sums(5000);
  for (int i = 0; i < 5000; ++i) sums[i] = a[i] + b[i];
  const auto wrong_sums = [&](const float* got) {
    return compare({*c.oracle, Add::get().plain(), c.tensors[2], 2, got}).wrong;
  };
  CHECK(wrong_sums(sums.data()) == 0);
  CHECK(wrong_sums(a) > 4900);  // the other addend is seldom lost
  CHECK(wrong_sums(b) > 4900);
  sums[1234] = std::nextafter(sums[1234], 1e9f);
  sums[4999] = std::nextafter(sums[4999], -1e9f);
  CHECK(wrong_sums(sums.data()) == 2);
  int rounded_sums = 0;
  for (int i = 0; i < 5000; ++i)
    rounded_sums += static_cast<double>(a[i] + b[i]) != static_cast<double>(a[i]) + static_cast<double>(b[i]);
  CHECK(rounded_sums > 500);
}

TEST_CASE("a table is repeated") {
  const int64_t n = 50001, length = AddTable::length(n);
  CHECK(length == 6144);
  CHECK(AddTable::length(0) == 1024);
  CHECK(AddTable::length(1 << 24) == 1 << 21);
  const Case c(AddTable::get(), {{n}}, 1);
  CHECK(c.tensors[1].count() == length);
  const auto* a = reinterpret_cast<const float*>(c.inputs[0].data());
  const auto* table = reinterpret_cast<const float*>(c.inputs[1].data());
  std::vector<float> sums(n);
  for (int64_t i = 0; i < n; ++i) sums[i] = a[i] + table[i % length];
  const auto wrong_sums = [&] {
    return compare({*c.oracle, AddTable::get().plain(), c.tensors[2], 2, sums.data()}).wrong;
  };
  CHECK(wrong_sums() == 0);
  sums[length] = a[length] + table[1];
  CHECK(wrong_sums() == 1);
}

TEST_CASE("each group has a sum of its own") {
  const int64_t n = 2 * GroupSum::kGroup + 5;
  const Case c(GroupSum::get(), {{n}}, 1);
  const auto* from = reinterpret_cast<const uint32_t*>(c.inputs[0].data());
  std::vector<uint32_t> to(n);
  for (int64_t first = 0; first < n; first += GroupSum::kGroup) {
    const int64_t last = std::min(first + GroupSum::kGroup, n);
    uint32_t sum = 0;
    for (int64_t i = first; i < last; ++i) sum += from[i];
    for (int64_t i = first; i < last; ++i) to[i] = from[i] + sum;
  }
  const auto wrong_words = [&] {
    return compare({*c.oracle, GroupSum::get().plain(), c.tensors[1], 1, to.data()}).wrong;
  };
  CHECK(wrong_words() == 0);
  for (int64_t i = 2 * GroupSum::kGroup; i < n; ++i) ++to[i];  // the short group, off by one
  CHECK(wrong_words() == 5);
}

TEST_CASE("words in pieces are judged as a whole") {
  const Case c(Read::get(), {{5}}, 1);
  const auto* from = reinterpret_cast<const uint32_t*>(c.inputs[0].data());
  uint32_t pieces[5] = {from[0] + from[4], 0, from[1] + from[2], from[3], 0};
  CHECK(c.oracle->judge(1, pieces) == "");
  pieces[1] = 1;
  CHECK(c.oracle->judge(1, pieces).find("the sum of 5 words is wrong: expected 0x") == 0);
}

TEST_CASE("a vector's RMSNorm is that of a matrix of one row") {
  for (const Operator* op : {&RmsNormVector::get(), &RmsNormVectorBfloat16::get()}) {
    for (const int64_t n : {1, 33, 1000, 8193}) {
      const Case given(*op, {{n}}, 1);
      const Type type = given.tensors[kInput].type;
      const auto at = [&](int tensor, int64_t i) { return element(type, given.inputs[tensor].data(), i); };
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += at(kInput, i) * at(kInput, i);
      const double mean = sum / static_cast<double>(n);
      CHECK((mean < 1e-3) == (n % 5 == 3));  // rows in which eps matters
      const double eps = static_cast<double>(1e-6f), rstd = 1.0 / std::sqrt(mean + eps);
      std::vector<double> expected(n), low(n), high(n);
      given.oracle->answer(op->plain(), kOutput, 0, n, {expected.data(), low.data(), high.data()});
      for (int64_t i = 0; i < n; ++i) {
        CHECK(expected[i] == doctest::Approx(at(kInput, i) * rstd * at(kWeight, i)).epsilon(1e-12));
        CHECK(low[i] <= high[i]);
      }
    }
  }
  CHECK(RmsNormVector::get().tensors({{7}}).back().role == Role::scratch);
  CHECK(RmsNormVector::get().bytes({{1000}}, RmsNormVector::get().plain()) == 12000.0);
  CHECK(RmsNormVectorBfloat16::get().bytes({{1000}}, RmsNormVectorBfloat16::get().plain()) == 6000.0);
}

TEST_CASE("bytes") {
  const Operator& op = RmsNorm::get();
  Variant variant = op.plain();
  CHECK(op.bytes({{8192, 8192}}, variant) == 536870912.0 + 32768.0);
  variant.places[kWeight].absent = true;
  CHECK(op.bytes({{8192, 8192}}, variant) == 536870912.0);
  CHECK(op.bytes({{int64_t{1} << 32, 8192}}, variant) == 281474976710656.0);
  CHECK(Copy::get().bytes({{1000}}, Copy::get().plain()) == 8000.0);
  CHECK(Read::get().bytes({{1000}}, Read::get().plain()) == 4000.0);
  CHECK(Sum::get().bytes({{1000}}, Sum::get().plain()) == 4004.0);
  CHECK(Add::get().bytes({{1000}}, Add::get().plain()) == 12000.0);
}

namespace {

// What is said of one wrong element of an output of these elements.
std::string said_of(const Operator& op, int64_t n, int tensor, const std::function<void(const Case&, float*)>& write) {
  const Case given(op, {{n}}, 1);
  const Variant variant = op.plain();
  std::vector<float> got(given.tensors[tensor].count());
  write(given, got.data());
  const Output output{*given.oracle, variant, given.tensors[tensor], tensor, got.data()};
  return describe(compare(output), output);
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

TEST_CASE("a wrong sum is said to be the sum of what it is the sum of") {
  const auto said = [](int64_t n, auto change) {
    return said_of(Sum::get(), n, 1, [&](const Case& given, float* got) {
      const auto* x = reinterpret_cast<const float*>(given.inputs[0].data());
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * change(i);
      got[0] = static_cast<float>(sum);
    });
  };
  CHECK(ends_with(said(1000, [](int64_t i) { return i != 7; }), "; this is the sum without element 7"));
  CHECK(ends_with(said(1000, [](int64_t i) { return i < 256; }), "; this is the sum of the first 256 alone"));
  CHECK(ends_with(said(1000, [](int64_t i) { return 1 + (i == 999); }),
                  "; this is the sum with element 999 added twice"));
  CHECK(ends_with(said(1000, [](int64_t) { return 0; }), "; this is the sum of nothing"));
}

TEST_CASE("an element that holds another one's value is said to") {
  const std::string said = said_of(Add::get(), 100, 2, [](const Case& given, float* got) {
    const auto *a = reinterpret_cast<const float*>(given.inputs[0].data()),
               *b = reinterpret_cast<const float*>(given.inputs[1].data());
    for (int64_t i = 0; i < 100; ++i) got[i] = a[i] + b[i];
    got[41] = got[17];
  });
  CHECK(ends_with(said, "; the first holds what belongs to element 17"));
}

TEST_CASE("numbers of 8 bits: every code, ties to even, and what is too large") {
  for (int code = 0; code < 256; ++code) {
    const auto e4m3 = static_cast<uint8_t>(code);
    const auto int8 = static_cast<int8_t>(code - 128);
    const bool is_number = (e4m3 & 0x7f) != 0x7f;
    CHECK(std::isnan(E4m3::value(e4m3)) == !is_number);
    if (is_number) CHECK(E4m3::from(static_cast<float>(E4m3::value(e4m3))) == e4m3);
    CHECK(Int8::from(static_cast<float>(Int8::value(int8))) == int8);
    if ((e4m3 & 0x7f) >= 0x7e) continue;
    const auto tie = static_cast<float>((E4m3::value(e4m3) + E4m3::value(static_cast<uint8_t>(code + 1))) / 2);
    CHECK(E4m3::from(tie) == (code % 2 == 0 ? code : code + 1));
    CHECK(E4m3::from(std::nextafter(tie, 1e9f)) == (code < 128 ? code + 1 : code));
  }
  CHECK(E4m3::value(1) == 0x1p-9);
  CHECK(E4m3::value(0x38) == 1.0);
  CHECK(E4m3::value(0x7e) == 448.0);
  CHECK(E4m3::from(1e30f) == 0x7e);
  CHECK(E4m3::from(-500.0f) == 0xfe);
  CHECK(E4m3::from(std::numeric_limits<float>::quiet_NaN()) == 0x7f);
  CHECK(Int8::from(2.5f) == 2);
  CHECK(Int8::from(-1e9f) == -128);
}
