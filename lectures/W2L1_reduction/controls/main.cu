// The last stages beside CUB, beside reading alone, and beside themselves with other numbers of threads, loads and
// blocks.
#define LADDER_ALL_STAGES
#include <vector>

#include "cub_device_reduce.cuh"
#include "lectures/W2L1_reduction/reduction6.cu"
#include "lectures/W2L1_reduction/reduction7.cu"
#include "lectures/W2L1_reduction/reduction8.cu"
#include "lectures/W2L1_reduction/reduction9.cu"
#include "read_only.cuh"

namespace ladder::reduction::controls {

// Threads, loads per thread and step, waves (0: no block takes a second tile), hints.
const std::vector<AnyStage> all = {
    Stage<Sum>{"cub_device_reduce", "NVIDIA's library", launch_cub, kNeedsCub},
    reduction6::stage,
    reduction7::stage,
    reduction8::stage,
    Stage<Sum>{"reduction8_256_threads", "256 threads per block", reduction8::launch<256>},
    Stage<Sum>{"reduction8_1024_threads", "1024 threads per block", reduction8::launch<1024>},
    Stage<Sum>{"reduction8_2_loads", "2 loads per thread and step", reduction8::launch<512, 2>},
    Stage<Sum>{"reduction8_8_loads", "8 loads per thread and step", reduction8::launch<512, 8>},
    Stage<Sum>{"reduction8_4_waves", "four times as many blocks", reduction8::launch<512, 4, 4>},
    Stage<Sum>{"reduction8_no_loop", "a block for each tile", reduction8::launch<512, 4, 0>},
    Stage<Sum>{"reduction8_no_loop_8_loads", "a block for each tile of 8 loads", reduction8::launch<512, 8, 0>},
    Stage<Sum>{"reduction8_hints", "__ldcs: read once", reduction8::launch<512, 4, 1, true>},
    reduction9::stage,
    Stage<Sum>{"reduction9_512_threads", "512 threads per block", reduction9::launch<512, 4>, {90}},
    Stage<Sum>{"reduction9_4_waves", "four times as many clusters", reduction9::launch<256, 4, 4>, {90}},
    Stage<Sum>{
        "reduction9_no_loop_8_loads", "a cluster for each eight tiles of 8 loads", reduction9::launch<256, 8, 0>, {90}},
    Stage<Read>{"read_only", "4 loads, resident grid", launch_read<256, 4, 1>},
    Stage<Read>{"read_only_8_loads", "8 loads, resident grid", launch_read<256, 8, 1>},
    Stage<Read>{"read_only_4_waves", "4 loads, four times as many blocks", launch_read<256, 4, 4>},
    Stage<Read>{"read_only_no_loop", "8 loads, a block for each tile", launch_read<256, 8, 0>},
};

}  // namespace ladder::reduction::controls

int main(int argc, char** argv) { return ladder::run_all(ladder::reduction::controls::all, argc, argv); }
