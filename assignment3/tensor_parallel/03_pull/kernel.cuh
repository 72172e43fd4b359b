// 03_pull: one kernel. Each rank lays its partial result into symmetric memory; after a barrier over all ranks every
// rank loads the others' over NVLink, adds, and norms.
//
// It removes two launches and the sum's way through memory. It leaves three trips over the link, one after the other: a
// barrier, loads that go there and back, and a barrier before the next launch of a rank may overwrite what others still
// read.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::pull {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) pull_kernel(const Work w, const ncclDevComm comm, ncclWindow_t window) {
  __shared__ float warp_sums[2][32];
  // Block b of a rank meets block b of the others, which have the same rows.
  ncclLsaBarrierSession<ncclCoopCta> barrier(ncclCoopCta(), comm, ncclTeamTagLsa(), blockIdx.x);
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const auto partial = load_row<kPacks>(w, w.t.partial, row);
    uint4* const to = row_in(static_cast<char*>(ncclGetLocalPointer(window, 0)), w, row);
#pragma unroll
    for (int i = 0; i < kPacks; ++i)
      if (pack_of(i) < w.pitch) to[pack_of(i)] = partial.p[i];
  }
  barrier.sync(ncclCoopCta(), cuda::memory_order_acq_rel);
  int turn = 0;
  for (int64_t row = blockIdx.x; row < w.rows; row += gridDim.x, turn ^= 1) {
    const auto residual = load_row<kPacks>(w, w.t.residual, row), weight = load_row<kPacks>(w, w.t.weight, 0);
    RowSum<kPacks> sum = {};
    for (int rank = 0; rank < w.ranks; ++rank) {
      const uint4* const from = row_in(static_cast<char*>(ncclGetLsaPointer(window, 0, rank)), w, row);
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
  const Symmetric& memory = workspace.of(call.ranks, call.rows * row_bytes(call));
  const Communicator& all = Communicator::of(call.ranks);
  const unsigned threads = threads_for(call.cols);
  with_packs(call.cols, [&](auto packs) {
    auto* const kernel = pull_kernel<packs>;
    const unsigned blocks = waiting_blocks(call.ranks, kernel, threads, call.rows);
    launch_on_all(call, memory, [&](const Work& w) {
      kernel<<<blocks, threads, 0, stream>>>(w, all.device[w.rank], memory.window[w.rank]);
    });
  });
}

inline const Stage<AllReduceRmsNorm> stage{
    "03_pull", "one kernel: a barrier, then loads from the peers", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::pull
