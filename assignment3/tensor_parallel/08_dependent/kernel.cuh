// 08_dependent: 05_data_is_flag, launched as a dependent kernel: its blocks come to the SMs and load the weight
// while the kernel before it ends.
//
// It removes the start of the kernel from the time of a launch (of one launch alone no counter shows it). The kernel
// before it must not write the weight. Needs sm_90.
#pragma once

#include "assignment3/tensor_parallel/dependent.cuh"
#include "assignment3/tensor_parallel/one_shot.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::dependent {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) dependent_kernel(const Work w, uint32_t packs) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  wait_for_previous_kernel();
  let_next_kernel_start();
  norm_rows_in_one_shot(w, packs, weight, warp_sums);
}

inline Workspace workspace(kSentinel);

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, bytes_of_turns(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = dependent_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
    const DependentLaunch dependent(blocks, threads, stream);
    launch_on_all(call, memory,
                  [&](const Work& w) { CUDA_CHECK(cudaLaunchKernelEx(&dependent.config, kernel, w, packs_left(w))); });
  });
}

inline const Stage<AllReduceRmsNorm> stage{
    "08_dependent", "the kernel starts while the one before it ends", launch, {90, refuses}};

}  // namespace ladder::tensor_parallel::dependent
