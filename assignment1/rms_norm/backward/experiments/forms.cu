#include "common/operators/rms_norm_backward.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::backward {
namespace {

// As common/operators/rms_norm_backward.cpp lists them.
enum { kWeight = 2, kDsum = 3, kRstd = 4, kDweight = 6 };

struct Form {
  const char* form;
  Dtype dtype;
  std::vector<int> present, absent;  // tensors, unlike the main input's
};

}  // namespace

Table forms(const Report& report) {
  const std::vector<Form> all = {
      {"as training calls it", Dtype::bfloat16, {}, {}},
      {"rstd stored", Dtype::bfloat16, {kRstd}, {}},
      {"with dsum", Dtype::bfloat16, {kDsum}, {}},
      {"with dsum, rstd stored", Dtype::bfloat16, {kDsum, kRstd}, {}},
      {"no weight", Dtype::bfloat16, {}, {kWeight, kDweight}},
      {"dx alone", Dtype::bfloat16, {}, {kDweight}},
      {"float16", Dtype::half, {}, {}},
      {"float32", Dtype::float32, {}, {}},
  };
  const Operator& op = RmsNormBackward::get();
  const int iterations = std::min(report.options.iterations, 15);
  Table table;
  table.title =
      text("Experiment 2: other kinds of call, 8192 x 4096 (float32: 4096 x 4096), cold, median of %d", iterations);
  table.columns = {{"stage", "stage"},
                   {"form", "form"},
                   {"dtype", "dtype"},
                   {"rows", "rows"},
                   {"cols", nullptr},
                   {"microseconds", "us"},
                   {"spread_percent", "spread", "%"},
                   {"gb_per_s", "GB/s"},
                   {"percent_of_datasheet", "of peak", "%"}};
  for (const Result& result : report.results) {
    const std::string name = result.stage->name;
    if (result.verdict != Verdict::pass || name != "08_prefetch") continue;
    for (const Form& form : all) {
      const int64_t rows = form.dtype == Dtype::float32 ? 4096 : 8192, cols = 4096;
      const Case given(op, {{rows, cols, static_cast<int64_t>(form.dtype)}}, report.options.seed);
      Variant variant = op.plain();
      for (const int place : form.present) variant.places[place].absent = false;
      for (const int place : form.absent) variant.places[place].absent = true;
      Problem problem(given, variant);
      Pool pool(problem, report.device);
      pool.prepare();
      const Timing timing = measure(*result.stage, problem, pool, iterations);
      const Outcome outcome = pool.verify(*result.stage);
      if (!outcome.failure.empty())
        throw std::runtime_error(text("%s, %s: %s", name.c_str(), form.form, outcome.failure.c_str()));
      const double bytes = op.bytes(given.shape, variant);
      require_possible(name, bytes, timing, report.device);
      Cells& cells = table.rows.emplace_back(Cells{name, form.form, op.parameters()[2].text_of(given.shape[2]),
                                                   std::to_string(rows), std::to_string(cols)});
      append(cells, {time_cells(timing), rate_cells(bytes, timing, report.device)});
    }
  }
  return table;
}

}  // namespace ladder::backward
