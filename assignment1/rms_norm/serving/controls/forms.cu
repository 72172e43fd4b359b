// The kernels of forms.h.
#include "forms.h"

#include "form.cuh"

namespace ladder::serving::controls {
namespace {

constexpr Requires kTokens = {0, RmsNormServing::refuses};

}  // namespace

const std::vector<AnyStage>& all() {
  static const std::vector<AnyStage> stages = {
      Stage<RmsNormServing>{"rms_norm_before", "rms_norm as in 01", launch<Sum::cub, Second::scalar>, kTokens},
      Stage<RmsNormServing>{"only_warp_reduction", "01 with the sum of 02", launch<Sum::warps, Second::scalar>,
                            kTokens},
      Stage<RmsNormServing>{"only_vectorized_pass", "01 with the second pass of 03", launch<Sum::cub, Second::vec>,
                            kTokens},
      Stage<RmsNormServing>{"only_row_pointers", "01, with the addresses of rows computed once",
                            launch<Sum::cub, Second::scalar, Rows::once>, kTokens},
      Stage<RmsNormServing>{"only_unrolling", "01 with both loops unrolled four times",
                            launch<Sum::cub, Second::scalar, Rows::each, 4>, kTokens},
      Stage<RmsNormServing>{"all_changes", "all four", launch<Sum::warps, Second::vec, Rows::once, 4>, kTokens},
      Stage<FusedAddRmsNorm>{"fused_add_before", "fused_add_rms_norm as in 04", launch_fused<Sum::cub>, kTokens},
      Stage<FusedAddRmsNorm>{"fused_add_only_warp_reduction", "04 with the sum of 05", launch_fused<Sum::warps>,
                             kTokens},
      Stage<FusedAddRmsNorm>{"fused_add_only_unrolling", "04 with both loops unrolled four times",
                             launch_fused<Sum::cub, 4>, kTokens},
      Stage<FusedAddRmsNorm>{"fused_add_all_changes", "both", launch_fused<Sum::warps, 4>, kTokens},
  };
  return stages;
}

const AnyStage& fused_before() { return all()[6]; }

const std::vector<Claim>& claims() {
  static const std::vector<Claim> made = {
      {"warp-level reductions", 1.5, 2.0, 0, 1},    {"vectorized normalization pass", 2.0, 3.0, 0, 2},
      {"better memory coalescing", 1.1, 1.3, 0, 3}, {"loop unrolling", 1.2, 1.2, 0, 4},
      {"combined effect", 3.0, 5.0, 0, 5},          {"fused: warp-level reduction", 1.3, 1.8, 6, 7},
      {"fused: loop unrolling", 1.2, 1.2, 6, 8},    {"fused: combined effect", 3.0, 5.0, 6, 9},
  };
  return made;
}

}  // namespace ladder::serving::controls
