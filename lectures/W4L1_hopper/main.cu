// What is new since Hopper: each feature beside the same work without it. The kernels are in the .cuh files, the
// story in README.md.
#include "bulk_copy.cuh"
#include "cluster.cuh"
#include "common/copy_kernel.h"
#include "dependent_launch.cuh"
#include "experiments/experiments.h"
#include "residency.cuh"

namespace ladder::hopper {

constexpr Requires kHopper = {90};

const std::vector<AnyStage> stages = {
    Stage<GroupSum>{"01_one_block", "a group's sum by one block", launch_whole_group},
    Stage<GroupSum>{"02_two_kernels", "by eight blocks, in two launches", launch_two_kernels},
    Stage<GroupSum>{"03_cluster", "by a cluster of eight blocks", launch_cluster<8>, kHopper},
    Stage<Copy>{"04_by_threads", "a block per SM, through registers", launch_tiles<false, kThreads>},
    Stage<Copy>{"05_bulk_copy", "a block per SM, in bulk through shared memory", launch_tiles<true, kThreads>, kHopper},
    Stage<Copy>{"06_in_order", "two launches, one after the other", launch_flips<false>},
    Stage<Copy>{"07_dependent", "two launches, the second starts early", launch_flips<true>, kHopper},
    Stage<AddTable>{"08_normal", "a table beside a stream", launch_add_table<false, false>},
    Stage<AddTable>{"09_held", "with cache hints", launch_add_table<true, false>},
    Stage<AddTable>{"10_window", "with an access policy window", launch_add_table<false, true>},
};

const std::vector<AnyStage> variants = {
    Stage<GroupSum>{"cluster_2", "", launch_cluster<2>, kHopper},
    Stage<GroupSum>{"cluster_4", "", launch_cluster<4>, kHopper},
    Stage<Copy>{"by_threads_32", "", launch_tiles<false, 32>},
    Stage<Copy>{"by_threads_128", "", launch_tiles<false, 128>},
    Stage<Copy>{"by_threads_256", "", launch_tiles<false, 256>},
    Stage<Copy>{"by_threads_512", "", launch_tiles<false, 512>},
    Stage<Copy>{"bulk_copy_32", "", launch_tiles<true, 32>, kHopper},
    Stage<Copy>{"bulk_copy_128", "", launch_tiles<true, 128>, kHopper},
    Stage<Copy>{"bulk_copy_256", "", launch_tiles<true, 256>, kHopper},
    Stage<Copy>{"bulk_copy_512", "", launch_tiles<true, 512>, kHopper},
    Stage<Copy>{"stream_alone", "", launch_copy},
};

}  // namespace ladder::hopper

int main(int argc, char** argv) {
  return ladder::run_all(ladder::hopper::stages, ladder::hopper::experiments, argc, argv);
}
