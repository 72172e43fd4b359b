// Experiments 3 and 4: what becomes of a row whose elements are large or small.
#include <algorithm>
#include <cmath>

#include "common/memory.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::precision {
namespace {

// One row on the device, for the stage's type of elements.
class Row {
 public:
  Row(const AnyStage& stage, int64_t cols, double eps)
      : stage_(stage),
        type_(stage.op->tensors({{1, cols}}).front().type),
        cols_(cols),
        eps_(eps),
        host_(cols * size_of(type_)),
        x_(allocate(cols * size_of(type_))),
        y_(allocate(cols * size_of(type_))) {}

  // y without a weight.
  std::vector<double> run(const std::vector<float>& values) {
    for (int64_t i = 0; i < cols_; ++i) set_element(type_, host_.data(), i, values[i]);
    CUDA_CHECK(cudaMemcpy(x_.get(), host_.data(), host_.size(), cudaMemcpyHostToDevice));
    void* const tensors[] = {x_.get(), nullptr, y_.get()};
    stage_({tensors, {{1, cols_}}, &eps_}, cudaStreamPerThread);
    CUDA_CHECK(cudaGetLastError());
    CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    std::vector<char> got(host_.size());
    CUDA_CHECK(cudaMemcpy(got.data(), y_.get(), got.size(), cudaMemcpyDeviceToHost));
    std::vector<double> y(cols_);
    for (int64_t i = 0; i < cols_; ++i) y[i] = element(type_, got.data(), i);
    return y;
  }

  // The same for a row of one number, whose first result stands for all.
  double run(float value) { return run(std::vector<float>(cols_, value))[0]; }

  // The inputs of the last run.
  double x(int64_t i) const { return element(type_, host_.data(), i); }
  Type type() const { return type_; }

 private:
  const AnyStage& stage_;
  Type type_;
  int64_t cols_;
  double eps_;
  std::vector<char> host_;
  DeviceMemory<> x_, y_;
};

const char* what_of(double y) { return std::isnan(y) ? "NaN" : std::isinf(y) ? "inf" : y == 0.0 ? "0" : "a number"; }

constexpr int kPositive = 0x7bff;  // of finite float16 numbers: their bits are 1 to 0x7bff, in ascending order
float float16_of(int bits) { return static_cast<float>(Float16::value(static_cast<uint16_t>(bits))); }

// The first of the positive float16 numbers for which `is` holds, if it holds for all after it; past the end: none.
template <class Is>
int first_number(Is is) {
  int low = 1, high = kPositive + 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    (is(float16_of(middle)) ? high : low) = is(float16_of(middle)) ? middle : middle + 1;
  }
  return low;
}

std::string number_or_none(int bits) {
  return bits < 1 || bits > kPositive ? "none" : text("%.9g", static_cast<double>(float16_of(bits)));
}

}  // namespace

namespace {

// The error of a row, or what the kernel wrote if that is no row of numbers: 0, inf or NaN.
std::string error_of_row(Row& row, const std::vector<float>& values, double eps) {
  const std::vector<double> y = row.run(values);
  const auto any = [&](auto is) { return std::any_of(y.begin(), y.end(), is); };
  if (any([](double v) { return std::isnan(v); })) return "NaN";
  if (any([](double v) { return std::isinf(v); })) return "inf";
  if (!any([](double v) { return v != 0.0; })) return "0";
  const double cols = static_cast<double>(y.size());
  double squares = 0.0, worst = 0.0;
  for (size_t i = 0; i < y.size(); ++i) squares += row.x(i) * row.x(i);
  const double rstd = 1.0 / std::sqrt(squares / cols + static_cast<double>(static_cast<float>(eps)));
  for (size_t i = 0; i < y.size(); ++i) worst = std::max(worst, std::abs(y[i] - row.x(i) * rstd));
  return text("%.2e", worst / (rstd * std::sqrt(squares / cols)));
}

}  // namespace

Table magnitude(const Report& report) {
  constexpr int64_t kCols = 1024;
  constexpr double kEps = 1e-6;
  Table table;
  table.title = text(
      "Experiment 3: a row of %lld normally distributed numbers times a power of two. The error is the largest of an\n"
      "element, relative to the root mean square of the right result; 0, inf, NaN: that is what the kernel wrote",
      static_cast<long long>(kCols));
  table.columns = {{"magnitude", "magnitude"}, {"cols", nullptr}};
  std::vector<Row> of_stages;
  for (const Result& result : report.results) {
    if (result.verdict != Verdict::pass) continue;
    of_stages.emplace_back(*result.stage, kCols, kEps);
    table.columns.push_back({result.stage->name, result.stage->name});
  }
  const std::vector<float> numbers = normal_numbers(kCols, report.options.seed);
  for (int power = -16; power <= 16; ++power) {
    std::vector<float> values(numbers);
    for (float& value : values) value = std::ldexp(value, power);
    Cells& cells = table.rows.emplace_back(Cells{text("%.9g", std::ldexp(1.0, power)), std::to_string(kCols)});
    for (Row& row : of_stages) cells.push_back(error_of_row(row, values, kEps));
  }
  return table;
}

Table thresholds(const Report& report) {
  Table table;
  table.title =
      "Experiment 4: rows of one float16 number. From which number on is the result 0, with eps 1e-6? Up to which is "
      "it\n"
      "infinite, with eps 1e-8, and what becomes of a row of zeros?";
  table.columns = {{"stage", "stage"},
                   {"cols", "cols"},
                   {"root_of_65520_by_cols", "sqrt(65520 / cols)"},
                   {"zero_from", "0 from"},
                   {"infinite_up_to", "inf up to"},
                   {"of_zeros", "of zeros"}};
  for (const Result& result : report.results) {
    if (result.verdict != Verdict::pass) continue;
    for (const int64_t cols : {1, 32, 512, 1024, 2048, 4096, 8192}) {
      Row ordinary(*result.stage, cols, 1e-6), small(*result.stage, cols, 1e-8);
      if (ordinary.type() != Type::float16) continue;
      const int zero = first_number([&](float x) { return ordinary.run(x) == 0.0; });
      const int finite = first_number([&](float x) { return std::isfinite(small.run(x)); });
      table.rows.push_back({result.stage->name, std::to_string(cols),
                            text("%.6g", std::sqrt(65520.0 / static_cast<double>(cols))), number_or_none(zero),
                            number_or_none(finite - 1), what_of(small.run(0.0f))});
    }
  }
  return table;
}

}  // namespace ladder::precision
