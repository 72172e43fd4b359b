// 09_by_size: the best of both for every number of rows. Few rows go in one shot, many in two, and the residual is
// sharded where two shots norm it. Both kernels are dependent ones.
//
// An engine knows the number of rows before the first layer, and it is the same in all of them: it can choose where the
// residual lies once for a pass through the model.
#pragma once

#include "assignment3/tensor_parallel/chunks.cuh"
#include "assignment3/tensor_parallel/dependent.cuh"
#include "assignment3/tensor_parallel/one_shot.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::by_size {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(const Work w, uint32_t packs) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  wait_for_previous_kernel();
  let_next_kernel_start();
  norm_rows_in_one_shot(w, packs, weight, warp_sums);
}

template <int kPacks>
__global__ void __launch_bounds__(kThreads) many_rows_kernel(const Work w) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  wait_for_previous_kernel();
  let_next_kernel_start();
  norm_rows_in_chunks(w, weight, warp_sums);
}

inline Workspace few_rows(kSentinel), many_rows(kSentinel);

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const bool few = call.rows < fewest_sharded(call.ranks);
  const Symmetric& memory =
      few ? few_rows.of(call.ranks, bytes_of_turns(call)) : many_rows.of(call.ranks, bytes_of_chunks(call));
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    if (few) {
      auto* const kernel = few_rows_kernel<packs>;
      const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
      const DependentLaunch dependent(blocks, threads, stream);
      launch_on_all(call, memory, [&](const Work& w) {
        CUDA_CHECK(cudaLaunchKernelEx(&dependent.config, kernel, w, packs_left(w)));
      });
    } else {
      auto* const kernel = many_rows_kernel<packs>;
      const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, shard_rows(call.rows, call.ranks));
      const DependentLaunch dependent(blocks, threads, stream);
      launch_on_all(call, memory, [&](const Work& w) { CUDA_CHECK(cudaLaunchKernelEx(&dependent.config, kernel, w)); });
    }
  });
}

inline const Stage<AllReduceRmsNormBySize> stage{
    "09_by_size", "one shot for few rows, two for many", launch, {90, refuses}};

}  // namespace ladder::tensor_parallel::by_size
