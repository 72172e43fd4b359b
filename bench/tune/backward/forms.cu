// The header's gradients with a table of one entry, which is the form.
#include <rms_norm/backward.cuh>

#include <climits>

#include "bench/tune/backward/form.h"

namespace tune {
namespace {

struct OneForm {
  static inline rms_norm::FewRows kFewRows[1] = {};
  static constexpr auto& kFewRowsWithRstd = kFewRows;
};

}  // namespace

size_t workspace_bytes(int64_t rows, int64_t cols) { return rms_norm::backward_workspace_bytes(rows, cols); }

cudaError_t launch(const Form& form, const Tensors& t, bool dependent, cudaStream_t stream) {
  OneForm::kFewRows[0] = {INT_MAX, INT64_MAX, form.parts, form.rows, form.rows_of_thread};
  rms_norm::Options options;
  options.dependent_launch = dependent;
  const auto with = [&](const auto& x) {
    return rms_norm::backward<OneForm>(t.dy, nullptr, x, t.weight, t.dx, t.dweight, t.workspace, t.rows, t.cols,
                                       options, stream);
  };
  return t.rstd ? with(rms_norm::WithRstd{t.x, t.rstd}) : with(t.x);
}

}  // namespace tune
