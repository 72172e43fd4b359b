// What a policy says about a product.
#pragma once

#include <cstdint>

namespace q4_gemm {

constexpr int64_t kAnySize = INT64_MAX;

// For up to `most_columns` columns and up to `weights` weights (m · k): blocks with `groups` times 64 rows, `phases`
// warps for each tile of 16 rows, slots for `depth` tiles per warp, `columns` columns; and `cluster` blocks that share
// k, where there are clusters.
struct FewChoice {
  int64_t most_columns, weights;
  int groups, phases, depth, columns, together, cluster;
};

}  // namespace q4_gemm
