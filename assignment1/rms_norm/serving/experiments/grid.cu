// Experiment 2: the document's grid of tokens, hidden sizes and types, with and without a residual: before and after
// its changes, and the production header in the same run.
#include <algorithm>
#include <list>
#include <string>

#include "arena.h"
#include "assignment1/rms_norm/serving/controls/forms.h"
#include "common/text.h"
#include "experiments.h"
#include "header/header.h"

namespace ladder::serving {
namespace {

const Stage<RmsNormServing> forward_header{"header", "the production header", header};
const Stage<FusedAddRmsNorm> fused_header{"header", "the production header", header};

// What the document compares: for float the generic form, and before it the same with CUB's sum and no unrolling.
struct Function {
  const char* name;
  bool adds_residual;
  AnyStage before, after, header;
};

std::vector<Function> functions(const Report& report, Dtype dtype) {
  const bool is_float = dtype == Dtype::float32;
  const AnyStage& fused_before = is_float ? controls::fused_before() : stage_of(report, "04_fused_add");
  const AnyStage& fused_after = is_float ? stage_of(report, "07_generic") : stage_of(report, "06_unrolled");
  return {
      {"rms_norm", false, stage_of(report, "01_cub_block_reduce"), stage_of(report, "03_vectorized"), forward_header},
      {"fused_add_rms_norm", true, fused_before, fused_after, fused_header}};
}

constexpr int64_t kTokens[] = {256, 512, 1024, 2048, 4096, 8192};
constexpr int kSizes = 6;

// "after_microseconds_256" and the like, which outlive the table.
const char* column_name(const std::string& what, int64_t num_tokens) {
  static std::list<std::string> names;
  return names.emplace_back(what + "_" + std::to_string(num_tokens)).c_str();
}

}  // namespace

Table grid(const Report& report) {
  const int iterations = std::min(report.options.iterations, 5);
  Table table;
  table.title = text(
      "Experiment 2: time before the document's changes by time after them, for 256 to 8192 tokens; then, for the "
      "same\n"
      "tokens, time after them by time of the production header. Cold cache, median of %d samples",
      iterations);
  table.columns = {{"function", "function"}, {"dtype", "dtype"}, {"hidden_size", "hidden"}};
  const auto add_columns = [&](const std::string& what, bool shown) {
    for (const int64_t num_tokens : kTokens) {
      const char* name = column_name(what, num_tokens);
      table.columns.push_back({name, shown ? name + what.size() + 1 : nullptr});  // on the screen the tokens alone
    }
  };
  add_columns("before_by_after", true);
  add_columns("after_by_header", true);
  add_columns("header_percent_of_datasheet", false);
  for (const char* what : {"before_microseconds", "after_microseconds", "header_microseconds"})
    add_columns(what, false);
  table.left = 2;

  const double peak = report.device.peak_bytes_per_second;
  const Arena arena(report.device);
  for (const Dtype dtype : {Dtype::half, Dtype::bfloat16, Dtype::float32})
    for (const Function& function : functions(report, dtype))
      for (const int64_t hidden_size : {768, 1024, 2048, 4096, 5120, 8192}) {
        const AnyStage* kernels[] = {&function.before, &function.after, &function.header};
        double took[3][kSizes];
        for (int kernel = 0; kernel < 3; ++kernel) {
          require_right(*kernels[kernel], hidden_size, dtype, report);
          for (int i = 0; i < kSizes; ++i)
            took[kernel][i] = arena
                                  .time(kernels[kernel]->launch<RmsNormServing>(), function.adds_residual, kTokens[i],
                                        hidden_size, dtype, iterations)
                                  .microseconds;
        }
        Cells& row = table.rows.emplace_back(Cells{function.name, name_of(dtype), std::to_string(hidden_size)});
        for (int i = 0; i < kSizes; ++i) row.push_back(text("%.2f", took[0][i] / took[1][i]));
        for (int i = 0; i < kSizes; ++i) row.push_back(text("%.2f", took[1][i] / took[2][i]));
        for (int i = 0; i < kSizes; ++i) {
          const double bytes = bytes_of_call(function.adds_residual, kTokens[i], hidden_size, dtype);
          row.push_back(peak > 0 ? text("%.1f", 1e8 * bytes / took[2][i] / peak) : "");
        }
        for (const auto& times : took)
          for (const double microseconds : times) row.push_back(text("%.2f", microseconds));
      }
  return table;
}

}  // namespace ladder::serving
