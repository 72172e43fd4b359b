// The work of a ladder's program.
#pragma once
#include "common/report.h"

namespace ladder {

// Checks the stages that the options ask for and, on a GPU, times them.
Report check_stages(const std::vector<AnyStage>& stages, const Options& options);

// For a profiler: launches each stage once on the main input; no other kernel runs in this process.
void launch_once(const std::vector<AnyStage>& stages, Options options);

}  // namespace ladder
