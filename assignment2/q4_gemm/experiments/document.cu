// Experiment 2: the document's table of kernels and shapes. Its columns are the errors and GFLOP/s of one set of
// buffers again and again (warm); here times with many sets in turn (cold) stand beside them.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "common/operators/q4_gemm.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::q4_gemm {
namespace {

constexpr int kY = 0;  // the operator's first tensor

std::vector<Shape> shapes(const Device& device) {
  if (device.cpu) return {{{512, 1, 4096}}, {{512, 2, 4096}}, {{512, 4, 4096}}};
  return {{{4096, 1, 14336}}, {{4096, 2, 14336}}, {{4096, 4, 14336}}, {{4096, 1, 4096}}, {{8192, 2, 14336}}};
}

// The largest absolute error of all outputs, which are right.
double largest_error(Problem& problem) {
  const Case& given = problem.given();
  const int64_t count = given.tensors[kY].count();
  std::vector<float> got(count);
  std::vector<double> expected(count), low(count), high(count);
  problem.buffers[kY].download(got.data(), 0, count);
  given.oracle->answer(problem.variant(), kY, 0, count, {expected.data(), low.data(), high.data()});
  double largest = 0.0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(static_cast<double>(got[i]) - expected[i]));
  return largest;
}

}  // namespace

void add_time_columns(Table& table) {
  for (const Column& column : std::vector<Column>{{"warm_microseconds", "warm us"},
                                                  {"warm_spread_percent", "spread", "%"},
                                                  {"warm_gflop_per_s", "warm GFLOP/s"},
                                                  {"microseconds", "us"},
                                                  {"spread_percent", "spread", "%"},
                                                  {"gb_per_s", "GB/s"},
                                                  {"percent_of_datasheet", "of datasheet", "%"},
                                                  {"gflop_per_s", "GFLOP/s"}})
    table.columns.push_back(column);
}

Cells time_cells_of(const AnyStage& stage, Problem& problem, const Report& report) {
  const Shape& shape = problem.given().shape;
  const int iterations = report.options.iterations;
  const double bytes = stage.op->bytes(shape, problem.variant()), operations = stage.op->operations(shape);
  const auto one = [&](int64_t, cudaStream_t stream) { problem.launch(stage, problem.buffers.arguments(), stream); };
  const auto rate = [=](const Timing& timing) { return text("%.1f", operations / timing.microseconds / 1e3); };
  const Timing warm = measure(NumberedLaunch(one), 1, iterations);
  Pool pool(problem, report.device);
  pool.prepare();
  const Timing cold = measure(stage, problem, pool, iterations);
  const Outcome after = pool.verify(stage);
  if (!after.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, after.failure.c_str()));
  if (pool.larger_than_cache()) require_possible(stage.name, bytes, cold, report.device);
  Cells cells;
  append(cells, {time_cells(warm), {rate(warm)}, time_cells(cold), rate_cells(bytes, cold, report.device)});
  cells.push_back(rate(cold));
  return cells;
}

Table document(const Report& report) {
  const bool timed = !report.device.cpu && report.options.timing;
  Table table;
  table.title = "Experiment 2: the document's table";
  if (timed) table.title += "; warm: one set of buffers, as the document measured; the rest is cold";
  table.columns = {{"m", "m"},         {"n", "n"},         {"k", "k"},
                   {"stage", "stage"}, {"wrong", "wrong"}, {"largest_error", "largest error"}};
  if (timed) add_time_columns(table);
  table.left = 4;
  for (const Shape& shape : shapes(report.device)) {
    std::map<const Operator*, std::unique_ptr<Case>> cases;
    for (const Result& result : report.results) {
      const AnyStage& stage = *result.stage;
      if (result.verdict != Verdict::pass) continue;
      std::unique_ptr<Case>& given = cases[stage.op];
      if (!given) given = std::make_unique<Case>(*stage.op, shape, report.options.seed);
      Problem problem(*given, stage.op->plain());
      const Outcome outcome = problem.check(stage, thread_orders(report.device.cpu));
      if (!outcome.failure.empty()) throw std::runtime_error(text("%s: %s", stage.name, outcome.failure.c_str()));
      Cells& row = table.rows.emplace_back();
      for (int i = 0; i < 3; ++i) row.push_back(std::to_string(shape[i]));
      append(row, {{stage.name, text("0 of %lld", static_cast<long long>(given->tensors[kY].count())),
                    text("%.2g", largest_error(problem))}});
      if (timed) append(row, {time_cells_of(stage, problem, report)});
    }
  }
  return table;
}

}  // namespace ladder::q4_gemm
