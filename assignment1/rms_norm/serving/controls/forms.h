// Each change that the document claims a factor for, with the kernels that it lies between: one where nothing is
// changed and one where this alone is. The program of controls checks and times them as stages, the experiment `claims`
// sets the factors side by side.
#pragma once
#include <vector>

#include "common/operators/rms_norm_serving.h"

namespace ladder::serving::controls {

const std::vector<AnyStage>& all();

// fused_add_rms_norm without a change: 04_fused_add, and for float the same with one element per access.
const AnyStage& fused_before();

struct Claim {
  const char* said;      // the document's words
  double least, most;    // the document's factor
  size_t before, after;  // places in all()
};
const std::vector<Claim>& claims();

}  // namespace ladder::serving::controls
