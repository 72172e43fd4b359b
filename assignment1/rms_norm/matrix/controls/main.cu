// Kernels that stand between two stages where a stage changes more than one thing, in the order of the ladder.
#include <vector>

#include "assignment1/rms_norm/matrix/02_reduction5/kernel.cuh"
#include "assignment1/rms_norm/matrix/03_tiled/kernel.cuh"
#include "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"
#include "assignment1/rms_norm/matrix/06_vectorized/kernel.cuh"
#include "assignment1/rms_norm/matrix/09_streaming/kernel.cuh"
#include "hybrid.cuh"
#include "kept_row.cuh"

namespace ladder::matrix {

constexpr Requires kBlockPerRow = {0, RmsNorm::one_block_per_row};

const std::vector<Stage<RmsNorm>> all = {
    reduction5::stage,
    {"03_with_256_threads", "03's tile, with as many threads as 02", tiled::launch<256>, kBlockPerRow},
    tiled::stage,
    {"04_with_tree_of_02", "04's float4 loads, with 02's tree", controls::launch_hybrid_tree_of_02, kBlockPerRow},
    hybrid::stage,
    warp_shuffle::stage,
    {"05_with_512_threads", "05, with as many threads as 06", warp_shuffle::launch<512>, kBlockPerRow},
    {"06_with_256_threads", "06, with as many threads as 05", vectorized::launch<256>, kBlockPerRow},
    vectorized::stage,
    registers::stage,
    {"07_with_weight_first", "07, with 08's early loads of the weight",
     controls::launch_kept_row<controls::WeightFirst>, kBlockPerRow},
    {"07_with_weight_first_and_short_sum", "the same, with 08's reduction too",
     controls::launch_kept_row<controls::WeightFirstShortSum>, kBlockPerRow},
    critical_path::stage,
    {"09_with_sum_of_08", "08, with 09's cache hints", controls::launch_kept_row<controls::StreamingWithSumOf08>,
     kBlockPerRow},
    streaming::stage,
};

}  // namespace ladder::matrix

int main(int argc, char** argv) { return ladder::run_ladder(ladder::matrix::all, argc, argv); }
