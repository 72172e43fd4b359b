// A call of the header's gradients without the types of its elements: gradients.cu makes it, and an instance carries it
// out.
#pragma once
#include <rms_norm/backward.cuh>

#include "call.h"

namespace rms_norm_binding {

struct GradientsCall {
  Tensor dy{}, dsum{}, x{}, dx{};
  const void* weight;
  const float* rstd;  // of each row of x; nullptr if it is to be computed again
  void *dweight, *workspace;
  int64_t rows = 0, cols = 0;
  rms_norm::Options options;
};
// Calls the header, and if it refuses the call, says why.
using GradientsInstance = cudaError_t (*)(const GradientsCall&, cudaStream_t, const char** refusal);

// Where the instance of these types stands, of which x is what was normalized; nullptr if it is not compiled.
GradientsInstance& gradients_instance(Type x, Type weight, Type y, bool reads_rstd = false);

}  // namespace rms_norm_binding
