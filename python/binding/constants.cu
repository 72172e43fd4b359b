#include <rms_norm/rms_norm.cuh>

#include "instances.h"

namespace rms_norm_binding {

const int64_t kLongRowBytes = rms_norm::detail::kSplitBytes;
const size_t kWorkspaceBytes = rms_norm::kWorkspaceBytes;

Instance& instance(Type x, Type residual, Type weight, Type y) {
  static Instance all[kTypes][kTypes + 1][kTypes][kTypes];
  return all[x][residual][weight][y];
}

}  // namespace rms_norm_binding
