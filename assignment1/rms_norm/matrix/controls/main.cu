// Kernels that change one thing at a time, in the order of the ladder: between two stages where a stage changes more
// than one thing, and beside a stage where its page asks for something else.
#include <vector>

#include "assignment1/rms_norm/matrix/02_reduction5/kernel.cuh"
#include "assignment1/rms_norm/matrix/03_tiled/kernel.cuh"
#include "assignment1/rms_norm/matrix/05_warp_shuffle/kernel.cuh"
#include "assignment1/rms_norm/matrix/06_vectorized/kernel.cuh"
#include "assignment1/rms_norm/matrix/09_streaming/kernel.cuh"
#include "hybrid.cuh"
#include "kept_row.cuh"
#include "persistent.cuh"
#include "shapes.cuh"
#include "tiled.cuh"
#include "warp_shuffle.cuh"

namespace ladder::matrix {

using namespace controls;

constexpr Requires kBlockPerRow = {0, RmsNorm::one_block_per_row}, kHopper = {90, RmsNorm::one_block_per_row};

const std::vector<Stage<RmsNorm>> all = {
    reduction5::stage,
    {"03_with_256_threads", "03's tile, with as many threads as 02", tiled::launch<256>, kBlockPerRow},
    {"03_without_barriers", "03, with no barrier in its tile loop", launch_tile_without_barriers, kBlockPerRow},
    tiled::stage,
    {"04_with_tree_of_02", "04's float4 loads, with 02's tree", launch_hybrid_tree_of_02, kBlockPerRow},
    hybrid::stage,
    warp_shuffle::stage,
    {"05_with_512_threads", "05, with as many threads as 06", warp_shuffle::launch<512>, kBlockPerRow},
    {"05_with_streamed_stores", "05, with 09's hint for its stores", launch_streamed_stores, kBlockPerRow},
    {"06_with_256_threads", "06, with as many threads as 05", vectorized::launch<256>, kBlockPerRow},
    vectorized::stage,
    registers::stage,
    {"07_with_weight_first", "07, with 08's early loads of the weight", launch_kept_row<WeightFirst>, kBlockPerRow},
    {"07_with_weight_first_and_short_sum", "the same, with 08's reduction too", launch_kept_row<WeightFirstShortSum>,
     kBlockPerRow},
    critical_path::stage,
    {"08_with_weight_before_row", "08, with the loads of the weight before those of the row",
     launch_kept_row<WeightBeforeRow>, kBlockPerRow},
    {"09_with_sum_of_08", "08, with 09's cache hints", launch_kept_row<StreamingWithSumOf08>, kBlockPerRow},
    streaming::stage,
    {"09_with_streamed_weight", "09, with its hint for the weight too", launch_kept_row<StreamedWeight>, kBlockPerRow},
    {"09_with_ldcg", "09, with __ldcg for the row", launch_kept_row<ThroughL2>, kBlockPerRow},
    {"09_with_ldlu", "09, with __ldlu for the row", launch_kept_row<LastUse>, kBlockPerRow},
    {"09_with_ldcv", "09, with __ldcv for the row", launch_kept_row<NotCached>, kBlockPerRow},
    block_shapes::stage,
    {"10_with_1_vector", "10, with a block per row and one float4 per thread", launch_vectors<1>, kBlockPerRow},
    {"10_with_4_vectors", "10, with a block per row and four float4 per thread", launch_vectors<4>, kBlockPerRow},
    persistent::stage,
    {"11_without_prefetch", "11, loading a row when its turn comes", launch_walking<false, false>},
    {"11_with_drawn_rows", "11, with rows drawn from a counter", launch_walking<true, true>},
    bulk_copy::stage,
    {"12_with_block_per_row", "12, with a block for each row", launch_bulk_copy_of_one_row, kHopper},
    {"14_with_blocks_of_09", "09, started while the kernel before it ends", launch_kept_row<DependentLaunch>, kHopper},
    {"14_without_trigger", "the same, with no trigger", launch_kept_row<WithoutTrigger>, kHopper},
    held_reads::stage,
    {"16_with_plain_stores", "16, with no hint for its stores", launch_kept_row<HeldReadsAlone>, kBlockPerRow},
    {"16_with_held_stores", "16 with its two hints exchanged", launch_kept_row<HeldWrites>, kBlockPerRow},
};

}  // namespace ladder::matrix

int main(int argc, char** argv) {
  using ladder::matrix::all;
  return ladder::run_all({all.begin(), all.end()}, argc, argv);
}
