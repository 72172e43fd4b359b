// Many calls of rms_norm and fused_add_rms_norm of one shape, each with memory of its own, to be timed with a cold
// cache. The experiments time hundreds of shapes and kernels: this memory is filled once for all of them, where the
// stages' own timing uploads and verifies each shape anew.
#pragma once
#include <string>

#include "common/experiment.h"
#include "common/operators/rms_norm_serving.h"

namespace ladder::serving {

using Launch = RmsNormServing::Launch;

// A stage of the ladder, which the report has checked.
const AnyStage& stage_of(const Report& report, const char* name);

int64_t bytes_of(Dtype dtype);
const char* name_of(Dtype dtype);

class Arena {
 public:
  explicit Arena(const Device& device);

  // The call number `copy` of a shape: contiguous rows, all memory disjoint but the weight.
  ServingCall call(bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype, int64_t copy) const;
  // How many such calls fit, as many as a cold cache needs.
  int64_t copies(bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype) const;
  Timing time(Launch launch, bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype,
              int iterations) const;

 private:
  const Device& device_;
  int64_t bytes_;
  DeviceMemory<> memory_, weight_;
};

// The bytes that a call must move: input and output, and with a residual that one too, in and out.
double bytes_of_call(bool adds_residual, int64_t num_tokens, int64_t hidden_size, Dtype dtype);

// Throws unless the stage is right for 3 and for 300 tokens of that size: blocks differ from 256 tokens on.
void require_right(const AnyStage& stage, int64_t hidden_size, Dtype dtype, const Report& report);

}  // namespace ladder::serving
