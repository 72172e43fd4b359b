#include "common/pattern.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/text.h"

namespace ladder {
namespace {

constexpr int64_t kMost = 1 << 22;  // elements that are looked at again

struct Looked {
  std::vector<char> wrong;
  double factor = std::numeric_limits<double>::quiet_NaN();  // got / expected, if it is one for all wrong elements
};

// Whether two quotients of numbers of this type may be one number.
bool is_same_factor(double a, double b, Type type) {
  return std::abs(a - b) <= (type == Type::float32 ? 1e-4 : 2e-2) * std::abs(a);
}

Looked look(const Output& output) {
  const int64_t count = output.tensor.count();
  Looked looked{std::vector<char>(count)};
  bool first = true, one_factor = true;
  for (int64_t i = 0; i < count; ++i) {
    double expected, low, high;
    output.oracle.answer(output.variant, output.place, i, 1, {&expected, &low, &high});
    const double got = element(output.tensor.type, output.got, i);
    looked.wrong[i] = !is_right(output, i, expected, low, high);
    if (!looked.wrong[i] || expected == 0.0) continue;
    const double factor = got / expected;
    one_factor =
        one_factor && std::isfinite(factor) && (first || is_same_factor(factor, looked.factor, output.tensor.type));
    if (first) looked.factor = factor;
    first = false;
  }
  const bool several = std::count(looked.wrong.begin(), looked.wrong.end(), 1) > 1;
  const bool is_one = std::abs(looked.factor - 1.0) < 5e-3;  // which is an error of rounding
  if (!one_factor || is_one || (!several && count > 1)) looked.factor = std::numeric_limits<double>::quiet_NaN();
  return looked;
}

std::string numbered(const char* noun, int64_t first, int64_t last) {
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  return first == last ? text("%s %lld", noun, number(first))
                       : text("%ss %lld to %lld", noun, number(first), number(last));
}

// Where right and wrong change from one to the other once.
std::string one_change(const std::vector<char>& wrong, const char* noun, bool unwritten) {
  const auto size = static_cast<int64_t>(wrong.size());
  const int64_t change = std::find(wrong.begin(), wrong.end(), !wrong[0]) - wrong.begin();
  if (std::find(wrong.begin() + change, wrong.end(), wrong[0]) != wrong.end()) return "";
  if (wrong[0]) return "only " + numbered(noun, 0, change - 1) + (change > 1 ? " are wrong" : " is wrong");
  const std::string end = numbered(noun, change, size - 1);
  if (unwritten && size - change < change)
    return end + ", at the end, " + (size - change > 1 ? "were" : "was") +
           " never written: what is left after the last whole vector, warp or block?";
  if (unwritten)
    return "only " + numbered(noun, 0, change - 1) + (change > 1 ? " were" : " was") +
           " written: are there threads, blocks or steps of a loop for the others?";
  const bool is_row = noun[0] == 'r';
  if (change == 1) return text("only %s 0 is right%s", noun, is_row ? "" : ": is the result in lane 0 alone?");
  if (change % 32 == 0 && !is_row)
    return "only " + numbered(noun, 0, change - 1) + " are right" +
           (change == 32 ? ": is the result in warp 0 alone?"
                         : text(", those of %lld warps", static_cast<long long>(change / 32)));
  return "only " + end + (change + 1 < size ? ", at the end, are wrong" : ", at the end, is wrong");
}

// Where it repeats.
std::string repetition(const std::vector<char>& wrong, const char* noun) {
  const auto size = static_cast<int64_t>(wrong.size());
  for (int64_t period = 2; period <= 1024 && 2 * period <= size; period *= 2) {
    if (!std::equal(wrong.begin() + period, wrong.end(), wrong.begin())) continue;
    const int64_t bad = std::count(wrong.begin(), wrong.begin() + period, 1), right = period - bad;
    if (period == 2) return text("every second %s is wrong", noun);
    const std::string of = text("of every %lld %ss ", static_cast<long long>(period), noun);
    if (std::count(wrong.begin(), wrong.begin() + right, 0) == right) {
      const std::string first =
          right == 1 ? "only the first is right" : text("only the first %lld are right", static_cast<long long>(right));
      return of + first + (right == 1 && period == 32 ? ", that of lane 0" : right == 32 ? ", those of warp 0" : "");
    }
    if (bad == 1) {
      const int64_t place = std::find(wrong.begin(), wrong.end(), 1) - wrong.begin();
      return of + text("number %lld, counted from 0, is wrong", static_cast<long long>(place));
    }
    return text("right and wrong repeat every %lld %ss", static_cast<long long>(period), noun);
  }
  return "";
}

std::string regular(const std::vector<char>& wrong, const char* noun, bool unwritten) {
  const auto count = std::count(wrong.begin(), wrong.end(), 1);
  if (count == 0 || count == static_cast<int64_t>(wrong.size())) return "";
  const std::string change = one_change(wrong, noun, unwritten);
  return change.empty() ? repetition(wrong, noun) : change;
}

// Of a matrix by rows if each is right or wrong as a whole, by columns if all rows are alike.
std::string places(const std::vector<char>& wrong, const Tensor& tensor, bool unwritten) {
  if (!tensor.is_matrix) return regular(wrong, "element", unwritten);
  const int64_t rows = tensor.rows, cols = tensor.cols;
  const auto row = [&](int64_t number) { return wrong.begin() + number * cols; };
  std::vector<char> by_rows(rows);
  bool whole = true, alike = true;
  for (int64_t i = 0; i < rows; ++i) {
    by_rows[i] = *row(i);
    whole = whole && std::count(row(i), row(i + 1), by_rows[i]) == cols;
    alike = alike && std::equal(row(i), row(i + 1), row(0));
  }
  if (whole && rows > 1) return regular(by_rows, "row", unwritten);
  return alike ? regular({row(0), row(1)}, "column", unwritten) : "";
}

// Of values that are compared bit by bit: the one other element whose value this is.
std::string taken_from(const Comparison& comparison, const Output& output) {
  const double got = element(output.tensor.type, output.got, comparison.first);
  int64_t found = -1;
  for (int64_t i = 0; i < output.tensor.count(); ++i) {
    double expected, low, high;
    output.oracle.answer(output.variant, output.place, i, 1, {&expected, &low, &high});
    if (low != high) return "";
    if (expected != got) continue;
    if (found >= 0) return "";
    found = i;
  }
  if (found < 0) return "";
  const int64_t cols = output.tensor.cols;
  const auto number = [](int64_t value) { return static_cast<long long>(value); };
  return output.tensor.is_matrix ? text("; the first holds what belongs to (row %lld, col %lld)", number(found / cols),
                                        number(found % cols))
                                 : text("; the first holds what belongs to element %lld", number(found));
}

}  // namespace

std::string pattern(const Comparison& comparison, const Output& output) {
  if (output.tensor.count() > kMost || comparison.elements != output.tensor.count()) return "";
  const Looked looked = look(output);
  std::string result = places(looked.wrong, output.tensor, comparison.unwritten == comparison.wrong);
  if (!result.empty()) result = "; " + result;
  if (comparison.unwritten == comparison.wrong) return result;
  if (comparison.nans > 0)
    return result +
           "; outputs and scratch memory hold NaN before a launch: does something read or add to what nothing has "
           "written yet?";
  double expected, low, high;
  output.oracle.answer(output.variant, output.place, comparison.first, 1, {&expected, &low, &high});
  const std::string cause = output.oracle.cause(
      output.place,
      {comparison.first, expected, element(output.tensor.type, output.got, comparison.first), looked.factor});
  if (!cause.empty()) return result + "; " + cause;
  if (std::isfinite(looked.factor) && comparison.wrong > 1)
    return result + text("; all of them are %.4g times what is right", looked.factor);
  return result + taken_from(comparison, output);
}

}  // namespace ladder
