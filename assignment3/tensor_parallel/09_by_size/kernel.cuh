// 09_by_size: the best of both for every number of rows. Few rows go in one shot, many in two, and the residual is
// sharded where two shots norm it. Both kernels are dependent ones.
//
// An engine knows the number of rows before the first layer, and it is the same in all of them: it can choose where the
// residual lies once for a pass through the model.
#pragma once

#include "assignment3/tensor_parallel/dependent.cuh"
#include "assignment3/tensor_parallel/one_shot.cuh"
#include "assignment3/tensor_parallel/shots.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::by_size {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) few_rows_kernel(const Work w, uint32_t packs) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  wait_for_previous_kernel();
  let_next_kernel_start();
  const Turn turn(w);
  int step = 0;
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x, ++step) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row);
    const auto residual = load_row<kPacks>(w, w.t.residual, row);
    push_row(w, turn, row, partial);
    if (step == 0) {
      clear(w, turn);
      __syncthreads();  // all threads have read the state
      count_launch(w.state, turn.number, packs);
    }
    const auto sum = received_sum(w, turn, row, partial);
    store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums[step % 2]));
  }
}

constexpr uint64_t kMostSteps = 1 << 20;  // of a launch

template <int kPacks>
__global__ void __launch_bounds__(kThreads) many_rows_kernel(const Work w) {
  __shared__ float warp_sums[2][32];
  const auto weight = load_row<kPacks>(w, w.t.weight, 0);
  wait_for_previous_kernel();
  let_next_kernel_start();
  const uint64_t number = number_of_launch(w), base = number * kMostSteps;
  const int64_t steps = (w.shard + gridDim.x - 1) / gridDim.x;
  const auto row_of = [&](int64_t step) { return step * gridDim.x + blockIdx.x; };
  for (int64_t step = 0; step < steps + 2; ++step) {
    if (step < steps) {
      send_parts<kPacks>(w, row_of(step));
      signal(w, kParts, base + step + 1);
    }
    if (step >= 1 && step - 1 < steps) {
      wait_for(w, kParts, base + step, number);
      norm_and_send(w, row_of(step - 1), weight, warp_sums[step % 2]);
      signal(w, kRows, base + step);
    }
    if (step >= 2) {
      wait_for(w, kRows, base + step - 1, number);
      take_rows<kPacks>(w, row_of(step - 2));
    }
  }
  count_launch(w.state, number, 0);
}

inline Workspace few_rows(kSentinel), many_rows;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const bool few = call.rows < kFewestSharded;
  const Symmetric& memory =
      few ? few_rows.of(call.ranks, bytes_of_turns(call)) : many_rows.of(call.ranks, bytes_of_shots(call));
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
