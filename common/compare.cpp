#include "common/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/device_buffer.h"
#include "common/parallel.h"
#include "common/text.h"

namespace ladder {
namespace {

// Relative error; any error where zero is expected is infinite, and NaN stays NaN.
double relative_error(double expected, double got) {
  const double difference = std::abs(got - expected);
  return difference == 0.0 ? 0.0 : difference / std::abs(expected);
}

// Columns [first, last) of one row. Nearly every row is right, so the details are looked for only in one that is not.
void compare_columns(const Reference& reference, const float* got, int64_t row, int64_t first, int64_t last,
                     Comparison& result) {
  const double rstd = reference.rstd(row);
  const float* x = reference.input + row * reference.cols;
  const float* y = got + row * reference.cols;
  double worst = 0.0;
  int64_t right = 0;
  const auto scan = [&](auto weight) {
    for (int64_t col = first; col < last; ++col) {
      const double expected = static_cast<double>(x[col]) * rstd * weight(col);
      const double difference = std::abs(static_cast<double>(y[col]) - expected);
      right += difference <= result.tolerance * std::abs(expected);  // false for NaN
      const double error = difference / std::abs(expected);
      worst = error > worst ? error : worst;  // false for NaN, which is 0 / 0 too
    }
  };
  if (const float* w = reference.weight)
    scan([w](int64_t col) { return static_cast<double>(w[col]); });
  else
    scan([](int64_t) { return 1.0; });
  result.elements += last - first;
  result.worst_error = std::max(result.worst_error, worst);
  if (right == last - first) return;

  for (int64_t col = first; col < last; ++col) {
    const double error = relative_error(reference.at(row, col), static_cast<double>(y[col]));
    if (error <= result.tolerance) continue;
    const int64_t index = row * reference.cols + col;
    ++result.wrong;
    result.unwritten += bits_of(y[col]) == kPoison;
    if (result.first < 0) result.first = index;
    if (result.worst < 0 || (!std::isnan(result.worst_wrong_error) && !(error <= result.worst_wrong_error))) {
      result.worst = index;
      result.worst_wrong_error = error;
    }
  }
}

// Appends a later range's result to an earlier one's.
void merge(Comparison& all, const Comparison& part) {
  all.elements += part.elements;
  all.wrong += part.wrong;
  all.unwritten += part.unwritten;
  all.worst_error = std::max(all.worst_error, part.worst_error);
  if (part.first < 0) return;
  if (all.first < 0) all.first = part.first;
  if (all.worst < 0 || (!std::isnan(all.worst_wrong_error) && !(part.worst_wrong_error <= all.worst_wrong_error))) {
    all.worst = part.worst;
    all.worst_wrong_error = part.worst_wrong_error;
  }
}

std::string element_text(const Reference& reference, const float* got, int64_t index) {
  const int64_t row = index / reference.cols, col = index % reference.cols;
  const float value = got[index];
  const std::string got_text = bits_of(value) == kPoison ? "nothing (never written)"
                               : std::isnan(value)       ? "NaN"
                                                         : text("%.9g", static_cast<double>(value));
  return text("(row %lld, col %lld), expected %.9g, got %s", static_cast<long long>(row), static_cast<long long>(col),
              reference.at(row, col), got_text.c_str());
}

}  // namespace

Comparison compare(const Reference& reference, const float* got) {
  Comparison parts[kMaxParts];
  for (Comparison& part : parts) part.tolerance = tolerance(reference.cols);
  const int64_t cols = reference.cols;
  const int count = parallel_for(reference.rows * cols, 1 << 16, [&](int part, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / cols, first = begin % cols, last = std::min(cols, first + end - begin);
      compare_columns(reference, got, row, first, last, parts[part]);
      begin += last - first;
    }
  });
  for (int part = 1; part < count; ++part) merge(parts[0], parts[part]);
  return parts[0];
}

std::string describe(const Comparison& comparison, const Reference& reference, const float* got) {
  std::string result = text("%lld of %lld elements wrong", static_cast<long long>(comparison.wrong),
                            static_cast<long long>(comparison.elements));
  if (comparison.unwritten > 0) result += text(" (%lld never written)", static_cast<long long>(comparison.unwritten));
  result += ", first at " + element_text(reference, got, comparison.first);
  if (comparison.worst != comparison.first) result += ", worst at " + element_text(reference, got, comparison.worst);
  return result + text("; relative tolerance %.2g", comparison.tolerance);
}

}  // namespace ladder
