// 04_push: each rank stores its partial result into the memory of every other; after the barrier all loads are local.
//
// A load over the link goes there and comes back, and the thread waits for both ways; a store goes there, and no
// thread waits. It removes one way over the link. It leaves the two barriers.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::push {

// Each rank has a slot for every rank's partial results, its own included.
template <int kPacks>
__global__ void __launch_bounds__(kThreads) push_kernel(const Work w, const ncclDevComm comm) {
  __shared__ float warp_sums[2][32];
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row);
    for (int rank = 0; rank < w.ranks; ++rank) {
      uint4* const to = row_in(w.buffer[rank], w, w.rank * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (pack_of(i) < w.pitch) to[pack_of(i)] = partial.p[i];
    }
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x, turn ^= 1) {
    const auto residual = load_row<kPacks>(w, w.t.residual, row), weight = load_row<kPacks>(w, w.t.weight, 0);
    RowSum<kPacks> sum = {};
    for (int rank = 0; rank < w.ranks; ++rank) {
      const uint4* const from = row_in(w.buffer[w.rank], w, rank * w.rows + row);
#pragma unroll
      for (int i = 0; i < kPacks; ++i)
        if (pack_of(i) < w.pitch) add(sum.p[i], from[pack_of(i)]);
    }
    store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums[turn]));
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_release);
}

inline Workspace workspace;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  if (call.rows == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, call.ranks * call.rows * row_bytes(call));
  const Communicator& all = Communicator::of(call.ranks);
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = push_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
    launch_on_all(call, memory, [&](const Work& w) { kernel<<<blocks, threads, 0, stream>>>(w, all.device[w.rank]); });
  });
}

inline const Stage<AllReduceRmsNorm> stage{
    "04_push", "stores to the peers instead of loads from them", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::push
