// RMSNorm of one row, which many blocks share: y = x / sqrt(mean(x²) + eps) · weight.
#pragma once
#include "common/stage.h"

namespace ladder {

struct RmsNormVector {
  // input and output: n floats, not necessarily aligned beyond 4 bytes; weight: n floats or nullptr. scratch: kScratch
  // floats, aligned to 256 bytes, for what blocks have to say to each other. All launches get the same scratch memory,
  // as those of one stream would in a library; its contents before a launch are unknown.
  using Launch = void (*)(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  static constexpr int kScratch = 4096;
};

// The same with input, weight and output of bfloat16. Sums are float32, and a result is rounded once.
struct RmsNormVectorBfloat16 {
  using Launch = void (*)(const void* input, const void* weight, void* output, float* scratch, int64_t n, float eps,
                          cudaStream_t stream);
  static const Operator& get();
};

}  // namespace ladder
