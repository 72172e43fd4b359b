// Kernels that are wrong on purpose, and a program that shows one of them to the checker: --mutant NAME.
#include "assumed_alignment.cuh"
#include "byte_offset_overflow.cuh"
#include "cluster_block_leaves.cuh"
#include "cluster_without_barrier.cuh"
#include "columns_beyond_8192.cuh"
#include "dropped_tail.cuh"
#include "early_return.cuh"
#include "eps_outside_root.cuh"
#include "input_before_wait.cuh"
#include "last_row_skipped.cuh"
#include "missing_barrier.cuh"
#include "missing_broadcast_barrier.cuh"
#include "nan_for_zeros.cuh"
#include "one_column_too_many.cuh"
#include "overrun_by_one.cuh"
#include "refilled_too_early.cuh"
#include "rows_in_grid_y.cuh"
#include "square_of_mean.cuh"
#include "stale_partial_sums.cuh"
#include "stale_shared_memory.cuh"
#include "sum_clipped_at_8192.cuh"
#include "volatile_warp_tail.cuh"
#include "weight_checked_once.cuh"
#include "weight_ignored.cuh"
#include "weight_of_whole_passes.cuh"
#include "wrong_count.cuh"

constexpr auto kAny = ladder::Shows::anywhere, kCpu = ladder::Shows::on_cpu_device;
constexpr auto kWrong = "elements wrong, first at";
constexpr auto kUnwritten = "never written), first at";

int main(int argc, char** argv) {
  const std::vector<ladder::Mutant> mutants = {
      {"missing_barrier", "no barrier between the steps of the tree", missing_barrier::launch, kCpu, 0, 0, kWrong},
      {"missing_broadcast_barrier", "nobody waits for the result in shared memory", missing_broadcast_barrier::launch,
       kCpu, 0, 0, "thread order reversed"},
      {"volatile_warp_tail", "a volatile warp tail without __syncwarp", volatile_warp_tail::launch, kCpu, 0, 0, kWrong},
      {"stale_shared_memory", "no barrier between two rows of a block", stale_shared_memory::launch, kCpu, 0, 0,
       kWrong},
      {"refilled_too_early", "a buffer is filled with the next row while it is still being read",
       refilled_too_early::launch, kCpu, 0, 0, kWrong},
      {"cluster_without_barrier", "a cluster's sums are read without waiting for its other blocks",
       cluster_without_barrier::launch, kCpu, 0, 0, kWrong},
      {"cluster_block_leaves", "a block of a cluster ends before others have read its shared memory",
       cluster_block_leaves::launch, kCpu, 0, 0, "cudaErrorIllegalAddress"},
      {"stale_partial_sums", "sums that blocks left in an earlier launch are taken for this one's",
       stale_partial_sums::launch, kCpu, 0, 0, kWrong},
      {"input_before_wait", "the input is read before the kernel that writes it has ended", input_before_wait::launch,
       ladder::Shows::on_hopper, 0, 0, kWrong},
      {"early_return", "threads without a column return before the barrier", early_return::launch, kCpu, 0, 0,
       "cudaErrorLaunchFailure"},
      {"dropped_tail", "the last cols % 4 columns are dropped", dropped_tail::launch, kAny, 0, 0, kUnwritten},
      {"columns_beyond_8192", "columns beyond 32 × 256 are dropped", columns_beyond_8192::launch, kAny, 0, 0,
       kUnwritten},
      {"sum_clipped_at_8192", "the sum stops after 32 × 256 columns", sum_clipped_at_8192::launch, kAny, 0, 0, kWrong},
      {"one_column_too_many", "the sum reads past the end of the row", one_column_too_many::launch, kAny, 0, 0, kWrong},
      {"overrun_by_one", "one element is written past the end of the output", overrun_by_one::launch, kAny, 0, 0,
       "wrote outside its output"},
      {"last_row_skipped", "the last row is never computed", last_row_skipped::launch, kAny, 0, 0, kUnwritten},
      {"rows_in_grid_y", "more rows than gridDim.y can count", rows_in_grid_y::launch, kAny, 65536, 1,
       "cudaErrorInvalid"},
      {"byte_offset_overflow", "a 32-bit byte offset wraps at 2 GiB", byte_offset_overflow::launch, kAny, 65537, 8192,
       "65537 x 8192, weight"},
      {"assumed_alignment", "float4 accesses to unaligned addresses", assumed_alignment::launch, kAny, 0, 0,
       "cudaErrorMisalignedAddress"},
      {"eps_outside_root", "eps is added outside the root", eps_outside_root::launch, kAny, 0, 0, kWrong},
      {"wrong_count", "divided by the columns rounded up to the block", wrong_count::launch, kAny, 0, 0, kWrong},
      {"square_of_mean", "the mean squared, not the mean of the squares", square_of_mean::launch, kAny, 0, 0, kWrong},
      {"weight_ignored", "the weight is never applied", weight_ignored::launch, kAny, 0, 0, "1 x 1, weight"},
      {"weight_of_whole_passes", "the last columns are not multiplied by the weight", weight_of_whole_passes::launch,
       kAny, 0, 0, kWrong},
      {"weight_checked_once", "the weight is loaded only if the first row is aligned", weight_checked_once::launch,
       kAny, 0, 0, kWrong},
      {"nan_for_zeros", "a row of zeros becomes NaN", nan_for_zeros::launch, kAny, 0, 0, "got NaN"},
  };
  return ladder::run_mutants(mutants, argc, argv);
}
