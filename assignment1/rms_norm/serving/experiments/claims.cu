// Experiment 3: the document's factors, each beside what was measured where only that change is switched on.
#include <algorithm>

#include "arena.h"
#include "assignment1/rms_norm/serving/controls/forms.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::serving {
namespace {

constexpr int64_t kHiddenSizes[] = {768, 1024, 2048, 4096, 5120, 8192};
// Columns: the factor for each hidden size, and the two times behind it.
constexpr const char* kFactors[] = {"factor_768",  "factor_1024", "factor_2048",
                                    "factor_4096", "factor_5120", "factor_8192"};
constexpr const char* kBefore[] = {"before_microseconds_768",  "before_microseconds_1024", "before_microseconds_2048",
                                   "before_microseconds_4096", "before_microseconds_5120", "before_microseconds_8192"};
constexpr const char* kAfter[] = {"after_microseconds_768",  "after_microseconds_1024", "after_microseconds_2048",
                                  "after_microseconds_4096", "after_microseconds_5120", "after_microseconds_8192"};

std::string claimed(const controls::Claim& claim) {
  return claim.least == claim.most ? text("%.1f", claim.least) : text("%.1f to %.1f", claim.least, claim.most);
}

Table measured(const Report& report, int number, const std::vector<Dtype>& dtypes) {
  constexpr int64_t kTokens = 4096;
  const int iterations = std::min(report.options.iterations, 9);
  Table table;
  table.title = text(
      "Experiment %d: one change of the document at a time, %lld tokens, cold cache, median of %d samples.\n"
      "A factor is the time without the change divided by the time with it",
      number, static_cast<long long>(kTokens), iterations);
  table.columns = {{"change", "change"}, {"dtype", "dtype"}, {"claimed", "claimed"}};
  for (int i = 0; i < 6; ++i) table.columns.push_back({kFactors[i], kFactors[i] + 7});
  table.columns.push_back({"holds", "holds"});
  for (int i = 0; i < 6; ++i) table.columns.push_back({kBefore[i], nullptr});
  for (int i = 0; i < 6; ++i) table.columns.push_back({kAfter[i], nullptr});
  table.left = 3;
  const Arena arena(report.device);
  for (const Dtype dtype : dtypes) {
    std::vector<std::vector<double>> took(controls::all().size());
    for (size_t form = 0; form < controls::all().size(); ++form)
      for (const int64_t hidden_size : kHiddenSizes) {
        const AnyStage& stage = controls::all()[form];
        require_right(stage, hidden_size, dtype, report);
        const bool adds_residual = stage.op == &FusedAddRmsNorm::get();
        took[form].push_back(
            arena.time(stage.launch<RmsNormServing>(), adds_residual, kTokens, hidden_size, dtype, iterations)
                .microseconds);
      }
    for (const controls::Claim& claim : controls::claims()) {
      const std::vector<double>& before = took[claim.before];
      const std::vector<double>& after = took[claim.after];
      Cells& row = table.rows.emplace_back(Cells{claim.said, name_of(dtype), claimed(claim)});
      int holds = 0;
      for (int i = 0; i < 6; ++i) {
        row.push_back(text("%.2f", before[i] / after[i]));
        holds += before[i] / after[i] >= claim.least ? 1 : 0;
      }
      row.push_back(text("at %d of 6", holds));
      for (int i = 0; i < 6; ++i) row.push_back(text("%.2f", before[i]));
      for (int i = 0; i < 6; ++i) row.push_back(text("%.2f", after[i]));
    }
  }
  return table;
}

}  // namespace

Table claims(const Report& report) { return measured(report, 3, {Dtype::half, Dtype::float32}); }
Table claims_bfloat16(const Report& report) { return measured(report, 6, {Dtype::bfloat16}); }

}  // namespace ladder::serving
