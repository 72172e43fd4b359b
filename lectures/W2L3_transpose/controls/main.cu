// Kernels that stand beside the stages: the other half of v0, v5 and v6 with other tiles, v6 in another order and
// without any tile.
#define LADDER_ALL_STAGES
#include <vector>

#include "lectures/W2L3_transpose/transpose_v0.cu"
#include "lectures/W2L3_transpose/transpose_v3.cu"
#include "lectures/W2L3_transpose/transpose_v5.cu"
#include "lectures/W2L3_transpose/transpose_v6.cu"
#include "lectures/W2L3_transpose/transpose_v7.cu"
#include "without_tile.cuh"

namespace ladder::transpose::controls {

template <int kTile>
constexpr Requires kTiles = {0, Transpose::one_block_per_tile<kTile>};

const std::vector<AnyStage> all = {
    transpose_v0::stage,
    Stage<Transpose>{"v0_strided_reads", "v0 along the rows of the output", transpose_v0::launch<true>, kTiles<32>},
    transpose_v3::stage,
    Stage<Transpose>{"v5_with_tile_32", "v5 with the tile and the threads of v3", transpose_v5::launch<32, 8, 4>,
                     kTiles<32>},
    Stage<Transpose>{"v5_with_tile_64", "v5 with tiles of 64", transpose_v5::launch<64, 4, 16>, kTiles<64>},
    transpose_v5::stage,
    Stage<Transpose>{"v6_with_tile_32", "v6 with tiles of 32, 64 threads", transpose_v6::launch<32>, kTiles<32>},
    Stage<Transpose>{"v6_across", "v6 with the tiles in the order of v5", transpose_v6::launch<64, true>, kTiles<64>},
    Stage<Transpose>{"v6_without_tile", "v6 without shared memory", launch_without_tile, kTiles<32>},
    transpose_v6::stage,
    transpose_v7::stage,
};

}  // namespace ladder::transpose::controls

int main(int argc, char** argv) { return ladder::run_all(ladder::transpose::controls::all, argc, argv); }
