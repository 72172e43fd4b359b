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

inline const std::vector<Experiment> experiments = {
    {"document", "the document's table: outputs that are wrong, the largest error, GFLOP/s warm and cold", document,
     false},
    {"quantization", "how far is the product of quantized numbers from that of the numbers themselves?", quantization,
     false},
    {"tiles", "which tile suits 05_tile2d?", tiles, false},
    {"atomics", "what do atomic additions cost in place of 02_warp_multirow's shuffles?", atomics, false},
    {"over_time", "does 05_tile2d get slower while the GPU gets hot, and does a pause help?", over_time},
};

// Adds columns for times, and the cells of a row under them: warm with one set of buffers again and again, cold with
// many in turn.
void add_time_columns(Table& table);
Cells time_cells_of(const AnyStage& stage, Problem& problem, const Report& report);

}  // namespace ladder::q4_gemm
