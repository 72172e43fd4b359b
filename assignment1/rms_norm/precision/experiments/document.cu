// Experiment 2: the document's table of kernels and shapes. Its columns are the first three outputs and the time; here
// the error stands beside the outputs, and beside the time with one set of buffers (warm, as the document measured)
// that with many (cold), bandwidth and the copy kernel.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "common/launch.h"
#include "common/parallel.h"
#include "common/random.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::precision {

Format format_of(Type type) {
  return type == Type::float16 ? Format{11, -14} : type == Type::bfloat16 ? Format{8, -126} : Format{24, -126};
}

double last_place(double value, Type type) {
  const Format format = format_of(type);
  const int exponent = value == 0.0 ? format.lowest_exponent : std::max(std::ilogb(value), format.lowest_exponent);
  return std::ldexp(1.0, exponent - format.digits + 1);
}

// Box and Muller's method.
std::vector<float> normal_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(count);
  const uint64_t key = mix64(seed);
  parallel_for(count, 1 << 16, [&](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const double radius = (static_cast<double>(hash32(key, 2 * i)) + 1.0) * 0x1p-32;
      const double angle = static_cast<double>(hash32(key, 2 * i + 1)) * 0x1p-32;
      numbers[i] = static_cast<float>(std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * M_PI * angle));
    }
  });
  return numbers;
}

namespace {

enum Place { kX, kWeight, kY };
constexpr int64_t kSample = 64;  // rows whose error is computed

std::vector<Shape> shapes(const Device& device) {
  std::vector<Shape> all;
  for (const int64_t cols : {512, 1024, 2048, 4096, 8192}) all.push_back({{device.cpu ? 16 : 4096, cols}});
  if (!device.cpu) all.push_back({{8192, 8192}});
  return all;
}

// The worst error of the sampled rows, in units of the last place.
double worst_error(Problem& problem) {
  const Case& given = problem.given();
  const Tensor& y = given.tensors[kY];
  const int64_t chosen = std::min(y.rows, kSample);
  std::vector<char> got(y.cols * size_of(y.type));
  std::vector<double> expected(y.cols), low(y.cols), high(y.cols);
  double worst = 0.0;
  for (int64_t i = 0; i < chosen; ++i) {
    const int64_t first = sampled_row(i, chosen, y.rows) * y.cols;
    problem.buffers[kY].download(got.data(), first, y.cols);
    given.oracle->answer(problem.variant(), kY, first, y.cols, {expected.data(), low.data(), high.data()});
    for (int64_t col = 0; col < y.cols; ++col)
      worst = std::max(worst,
                       std::abs(element(y.type, got.data(), col) - expected[col]) / last_place(expected[col], y.type));
  }
  return worst;
}

}  // namespace

Table document(const Report& report) {
  const Device& device = report.device;
  const bool timed = !device.cpu && report.options.timing;
  Table table;
  table.title =
      "Experiment 2: the document's table. Normally distributed inputs, no weight; error: worst of 64 rows, in units "
      "of\n"
      "the last place of the format";
  if (timed) table.title += "; warm: one set of buffers, as the document measured; the rest is cold";
  table.columns = {{"rows", "rows"},
                   {"cols", "cols"},
                   {"stage", "stage"},
                   {"first", "first"},
                   {"second", "second"},
                   {"third", "third"},
                   {"error_in_last_places", "error"}};
  if (timed)
    for (const Column& column : std::vector<Column>{{"buffer_bytes", nullptr},
                                                    {"warm_microseconds", "warm us"},
                                                    {"warm_spread_percent", "spread", "%"},
                                                    {"microseconds", "us"},
                                                    {"spread_percent", "spread", "%"},
                                                    {"gb_per_s", "GB/s"},
                                                    {"percent_of_datasheet", "of datasheet", "%"},
                                                    {"percent_of_copy", "of copy", "%"}})
      table.columns.push_back(column);
  table.left = 3;

  for (const Shape& shape : shapes(device)) {
    std::map<const Operator*, std::unique_ptr<Case>> cases;
    std::map<double, Timing> copies;
    const std::vector<float> numbers = normal_numbers(shape[0] * shape[1], report.options.seed);
    for (const Result& result : report.results) {
      const AnyStage& stage = *result.stage;
      if (result.verdict != Verdict::pass || (stage.needs.refuses && stage.needs.refuses(shape))) continue;
      std::unique_ptr<Case>& given = cases[stage.op];
      if (!given)
        given = std::make_unique<Case>(*stage.op, shape, report.options.seed, [&](Case& c) {
          parallel_for(c.tensors[kX].count(), 1 << 16, [&](int, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) set_element(c.tensors[kX].type, c.inputs[kX].data(), i, numbers[i]);
          });
        });
      Variant variant = stage.op->plain();
      variant.places[kWeight].absent = true;
      Problem problem(*given, variant);
      const Outcome outcome = problem.check(stage, thread_orders(device.cpu), kSample);
      if (!outcome.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, outcome.failure.c_str()));

      const Type type = given->tensors[kY].type;
      char first[12];
      problem.buffers[kY].download(first, 0, 3);
      Cells& row = table.rows.emplace_back(Cells{std::to_string(shape[0]), std::to_string(shape[1]), stage.name});
      for (int i = 0; i < 3; ++i) row.push_back(text("%.8f", element(type, first, i)));
      row.push_back(text("%.2f", worst_error(problem)));
      if (!timed) continue;

      const int iterations = report.options.iterations;
      const double bytes = stage.op->bytes(shape, variant);
      const auto one = [&](int64_t, cudaStream_t stream) {
        problem.launch(stage, problem.buffers.arguments(), stream);
      };
      const Timing warm = measure(NumberedLaunch(one), 1, iterations);
      Pool pool(problem, device);
      pool.prepare();
      const Timing cold = measure(stage, problem, pool, iterations);
      const Outcome after = pool.verify(stage, kSample);
      if (!after.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, after.failure.c_str()));
      if (pool.larger_than_cache()) require_possible(stage.name, bytes, cold, device);
      if (copies.count(bytes) == 0) copies[bytes] = measure_copy(bytes, device, iterations);
      append(row, {{text("%.0f", bytes / 2.0)}, time_cells(warm), time_cells(cold), rate_cells(bytes, cold, device)});
      row.push_back(text("%.1f", 100.0 * copies[bytes].microseconds / cold.microseconds));
    }
  }
  return table;
}

}  // namespace ladder::precision
