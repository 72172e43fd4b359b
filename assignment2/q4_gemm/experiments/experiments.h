// Experiments 2 to 6. Each returns a table; none prints.
#pragma once
#include <vector>

#include "common/experiment.h"

namespace ladder::q4_gemm {

Table document(const Report& report);
Table quantization(const Report& report);
Table tiles(const Report& report);
Table atomics(const Report& report);
Table over_time(const Report& report);

// Adds columns for times, and the cells of a row under them: warm with one set of buffers again and again, cold with
// many in turn.
void add_time_columns(Table& table);
Cells time_cells_of(const AnyStage& stage, Problem& problem, const Report& report);

}  // namespace ladder::q4_gemm
