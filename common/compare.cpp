#include "common/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/parallel.h"
#include "common/pattern.h"
#include "common/text.h"

namespace ladder {
namespace {

constexpr int kChunk = 512;  // elements per call of the oracle

struct Chunk {
  double expected[kChunk], low[kChunk], high[kChunk];
  Answers answers() { return {expected, low, high}; }
};

// How far a value may be from the exact one. The exact value may lie outside the bounds if the right result is rounded
// twice.
double room(double expected, double low, double high) { return std::max(expected - low, high - expected); }

// Distance from the exact value, in units of the room that the bounds leave; infinite if they leave none.
double distance(double expected, double low, double high, double got) {
  const double off = std::abs(got - expected);
  return off == 0.0 ? 0.0 : off / room(expected, low, high);
}

// Elements [first, first + count). Nearly all are right, so it collects details only if one is wrong.
template <class T>
void compare_chunk(const Output& output, int64_t first, int count, Chunk& chunk, Comparison& result) {
  output.oracle.answer(output.variant, output.place, first, count, chunk.answers());
  const auto* got = static_cast<const typename T::Stored*>(output.got) + first;
  const bool any_sign = !output.oracle.is_exact(output.place);
  double worst = 0.0;
  int right = 0;
  for (int i = 0; i < count; ++i) {
    const double value = T::value(got[i]);
    const bool right_sign = any_sign | (std::signbit(value) == std::signbit(chunk.expected[i]));
    right += (value >= chunk.low[i]) & (value <= chunk.high[i]) & right_sign;  // 0 for NaN
    const double off = std::abs(value - chunk.expected[i]) / room(chunk.expected[i], chunk.low[i], chunk.high[i]);
    worst = off > worst ? off : worst;  // false for NaN, which is 0 / 0 too
  }
  result.elements += count;
  result.worst_of_all = std::max(result.worst_of_all, worst);
  if (right == count) return;

  for (int i = 0; i < count; ++i) {
    if (is_right(output, first + i, chunk.expected[i], chunk.low[i], chunk.high[i])) continue;
    const double off = distance(chunk.expected[i], chunk.low[i], chunk.high[i], T::value(got[i]));
    const bool unwritten = is_poison(output.tensor.type, got, i);
    ++result.wrong;
    result.unwritten += unwritten;
    result.nans += !unwritten && std::isnan(T::value(got[i]));
    if (result.first < 0) result.first = first + i;
    if (result.worst < 0 || (!std::isnan(result.worst_wrong) && !(off <= result.worst_wrong))) {
      result.worst = first + i;
      result.worst_wrong = off;
    }
  }
}

// Appends a later range's result to an earlier one's.
void merge(Comparison& all, const Comparison& part) {
  all.elements += part.elements;
  all.wrong += part.wrong;
  all.unwritten += part.unwritten;
  all.nans += part.nans;
  all.worst_of_all = std::max(all.worst_of_all, part.worst_of_all);
  if (part.first < 0) return;
  if (all.first < 0) all.first = part.first;
  if (all.worst < 0 || (!std::isnan(all.worst_wrong) && !(part.worst_wrong <= all.worst_wrong))) {
    all.worst = part.worst;
    all.worst_wrong = part.worst_wrong;
  }
}

std::string element_text(const Output& output, int64_t index) {
  Chunk chunk;
  output.oracle.answer(output.variant, output.place, index, 1, chunk.answers());
  const auto number = [&](double value) {
    return output.tensor.type == Type::uint32 ? text("0x%08x", static_cast<uint32_t>(value)) : text("%.9g", value);
  };
  const double value = element(output.tensor.type, output.got, index);
  const std::string got = is_poison(output.tensor.type, output.got, index) ? "nothing (never written)"
                          : std::isnan(value)                              ? "NaN"
                                                                           : number(value);
  const int64_t cols = output.tensor.cols;
  const std::string where = output.tensor.is_matrix ? text("(row %lld, col %lld)", static_cast<long long>(index / cols),
                                                           static_cast<long long>(index % cols))
                                                    : text("element %lld", static_cast<long long>(index));
  return text("%s, expected %s, got %s", where.c_str(), number(chunk.expected[0]).c_str(), got.c_str());
}

}  // namespace

bool is_right(const Output& output, int64_t index, double expected, double low, double high) {
  const double got = element(output.tensor.type, output.got, index);
  if (std::isnan(low)) return std::isnan(got) && !is_poison(output.tensor.type, output.got, index);
  if (!(got >= low && got <= high)) return false;
  return !output.oracle.is_exact(output.place) || std::signbit(got) == std::signbit(expected);
}

double error_of(const Comparison& comparison, double tolerance) {
  if (comparison.wrong > 0 && std::isnan(comparison.worst_wrong)) return comparison.worst_wrong;
  if (tolerance > 0) return comparison.worst_of_all * tolerance;
  return comparison.wrong > 0 ? std::numeric_limits<double>::infinity() : 0.0;
}

Comparison compare(const Output& output, int64_t sample) {
  const int64_t rows = output.tensor.rows, cols = output.tensor.cols;
  const int64_t chosen = std::min(rows, sample);
  Comparison parts[kMaxParts];
  const int count = parallel_for(chosen * cols, 1 << 16, [&](int part, int64_t begin, int64_t end) {
    Chunk chunk;
    with(output.tensor.type, [&](auto type) {
      while (begin < end) {
        const int64_t row = sampled_row(begin / cols, chosen, rows);
        const int64_t in_row = begin % cols, rest = chosen == rows ? end - begin : std::min(end - begin, cols - in_row);
        const int length = static_cast<int>(std::min<int64_t>(rest, kChunk));
        compare_chunk<decltype(type)>(output, row * cols + in_row, length, chunk, parts[part]);
        begin += length;
      }
    });
  });
  for (int part = 1; part < count; ++part) merge(parts[0], parts[part]);
  return parts[0];
}

std::string describe(const Comparison& comparison, const Output& output) {
  std::string result = text("%lld of %lld elements wrong", static_cast<long long>(comparison.wrong),
                            static_cast<long long>(comparison.elements));
  if (comparison.unwritten > 0) result += text(" (%lld never written)", static_cast<long long>(comparison.unwritten));
  result += ", first at " + element_text(output, comparison.first);
  if (comparison.worst != comparison.first) result += ", worst at " + element_text(output, comparison.worst);
  if (comparison.nans > 0) result += text("; %lld of them NaN", static_cast<long long>(comparison.nans));
  if (const double tolerance = output.oracle.tolerance(); tolerance > 0)
    result += text("; relative tolerance %.2g", tolerance);
  return result + pattern(comparison, output);
}

}  // namespace ladder
