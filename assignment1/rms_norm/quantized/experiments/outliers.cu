// One column of each row is 2^k times as large as the others, which are normally distributed. The last stage computes
// the codes, with each format and kind of scale; the error is that of the other columns against float64.
#include <algorithm>
#include <cmath>
#include <random>

#include "assignment1/rms_norm/quantized/07_fewer_warps/kernel.cuh"
#include "common/memory.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::quantized {
namespace {

constexpr int64_t kRows = 16, kCols = 4096;
constexpr float kEps = 1e-6f;

float number_of(Format format, uint8_t code) {
  if (format == Format::int8) return static_cast<int8_t>(code);
  __nv_fp8_e4m3 number;
  number.__x = code;
  return static_cast<float>(number);
}
int64_t outlier_of(int64_t row) { return (977 * row + 100) % kCols; }

// The root of the mean square error of the columns that are not outliers, over that of the numbers themselves.
double error(const std::vector<bf16>& x, Format format, bool blocks, bool one_scale) {
  std::vector<double> y(kRows * kCols);
  double most = 0.0;
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0.0;
    for (int64_t col = 0; col < kCols; ++col) {
      const double value = __bfloat162float(x[row * kCols + col]);
      sum += value * value;
    }
    for (int64_t col = 0; col < kCols; ++col) {
      const int64_t i = row * kCols + col;
      y[i] = __bfloat162float(x[i]) / std::sqrt(sum / kCols + kEps);
      most = std::max(most, std::abs(y[i]));
    }
  }
  const auto d_x = allocate<bf16>(kRows * kCols);
  const auto d_q = allocate<uint8_t>(kRows * kCols);
  const int64_t count = blocks ? kRows * (kCols / kBlockColumns) : kRows;
  const auto d_scales = allocate<float>(count), d_scale = allocate<float>(1);
  const float scale = static_cast<float>(most) / (format == Format::int8 ? 127.0f : 448.0f);
  CUDA_CHECK(cudaMemcpy(d_x.get(), x.data(), x.size() * sizeof(bf16), cudaMemcpyHostToDevice));
  CUDA_CHECK(cudaMemcpy(d_scale.get(), &scale, sizeof(scale), cudaMemcpyHostToDevice));
  QuantizedCall call = {};
  call.x = d_x.get(), call.q = d_q.get(), call.scales = d_scales.get(), call.eps = kEps;
  call.scale = one_scale ? d_scale.get() : nullptr;
  call.rows = kRows, call.cols = kCols, call.format = format, call.blocks = blocks;
  fewer_warps::launch(call, cudaStreamPerThread);
  CUDA_CHECK(cudaGetLastError());
  CUDA_CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  std::vector<uint8_t> q(kRows * kCols);
  std::vector<float> scales(count);
  CUDA_CHECK(cudaMemcpy(q.data(), d_q.get(), q.size(), cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaMemcpy(scales.data(), d_scales.get(), count * sizeof(float), cudaMemcpyDeviceToHost));
  double errors = 0.0, squares = 0.0;
  for (int64_t row = 0; row < kRows; ++row)
    for (int64_t col = 0; col < kCols; ++col) {
      if (col == outlier_of(row)) continue;
      const int64_t i = row * kCols + col;
      const double got = number_of(format, q[i]) * scales[blocks ? col / kBlockColumns * kRows + row : row];
      errors += (got - y[i]) * (got - y[i]);
      squares += y[i] * y[i];
    }
  return std::sqrt(errors / squares);
}

}  // namespace

Table outliers(const Report& report) {
  Table table;
  table.title =
      "One column of each row is so many times as large as the others. The error is that of the others:\n"
      "the root of its mean square, relative to theirs";
  table.columns = {{"outlier", "outlier"}, {"cols", nullptr}};
  struct Way {
    const char* name;
    Format format;
    bool blocks, one_scale;
  };
  static constexpr Way kWays[] = {
      {"e4m3_tensor", Format::e4m3, false, true}, {"e4m3_row", Format::e4m3, false, false},
      {"e4m3_block", Format::e4m3, true, false},  {"int8_tensor", Format::int8, false, true},
      {"int8_row", Format::int8, false, false},   {"int8_block", Format::int8, true, false},
  };
  for (const Way& way : kWays) table.columns.push_back({way.name, way.name});
  std::mt19937_64 random(report.options.seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(kRows * kCols);
  for (float& value : numbers) value = normal(random);
  for (int power = 0; power <= 20; ++power) {
    std::vector<bf16> x(numbers.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = __float2bfloat16(numbers[i]);
    for (int64_t row = 0; row < kRows; ++row)
      x[row * kCols + outlier_of(row)] = __float2bfloat16(std::ldexp(1.0f, power));
    Cells& cells = table.rows.emplace_back(Cells{std::to_string(1 << power), std::to_string(kCols)});
    for (const Way& way : kWays) cells.push_back(text("%.2e", error(x, way.format, way.blocks, way.one_scale)));
  }
  return table;
}

}  // namespace ladder::quantized
