// Experiment 3: many launches in a row without a wait, with changing inputs, where now one rank comes late, now
// another.
#include <cstdlib>

#include "common/check.h"
#include "common/operator.h"
#include "common/text.h"
#include "experiments.h"

namespace ladder::tensor_parallel {

Table late(const Report& report) {
  constexpr int kLaunches = 2000;
  constexpr int64_t kRows[] = {1, 4, 7, 12, 30};
  Table table;
  table.title =
      text("Experiment 3: five times %d launches in a row, one rank late at random by up to 30 us", kLaunches);
  table.columns = {{"stage", "stage"}, {"rows", "rows"},         {"cols", "cols"},
                   {"ranks", "ranks"}, {"launches", "launches"}, {"wrong", "what was wrong"}};
  for (const Result& result : report.results) {
    if (result.verdict != Verdict::pass) continue;
    for (const int64_t rows : kRows) {
      const Shape shape{{rows, 1000, report.options.shape[2]}};
      if (result.stage->needs.refuses && result.stage->needs.refuses(shape)) continue;
      const Outcome outcome = check_in_a_row(*result.stage, *result.stage->op, shape, report.options.seed, kLaunches);
      table.rows.push_back({result.stage->name, std::to_string(shape[0]), std::to_string(shape[1]),
                            std::to_string(shape[2]), std::to_string(kLaunches),
                            outcome.failure.empty() ? "nothing" : outcome.failure});
    }
  }
  return table;
}

}  // namespace ladder::tensor_parallel
