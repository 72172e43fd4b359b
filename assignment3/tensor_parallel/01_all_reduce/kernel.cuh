// 01_all_reduce: two launches. NCCL adds the partial results of all ranks, and a kernel adds the residual and
// norms.
//
// The sum goes to memory and comes back, between two launches; for few rows both take longer than the bytes.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::all_reduce {

template <int kPacks>
__global__ void __launch_bounds__(kThreads) norm_kernel(const Work w) {
  __shared__ float warp_sums[32];
  const int64_t row = blockIdx.x;
  const Packs<kPacks> sums = load_row<kPacks>(w, w.t.partial, row);  // of all ranks, by now
  RowSum<kPacks> sum = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) add(sum.p[i], sums.p[i]);
  const auto residual = load_row<kPacks>(w, w.t.residual, row), weight = load_row<kPacks>(w, w.t.weight, 0);
  store_row(w, w.t.y, row, normed_row(w, row, sum, residual, weight, warp_sums));
}

inline Workspace workspace;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  const size_t count = call.rows * call.cols;
  if (count == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, count * sizeof(__nv_bfloat16));
  const Communicator& all = Communicator::of(call.ranks);
  for_all_ranks(call.ranks, [&](int rank) {
    NCCL_CHECK(ncclAllReduce(call.rank[rank].partial, memory.seen[rank][rank], count, ncclBfloat16, ncclSum,
                             all.comm[rank], stream));
  });
  launch_on_all(call, memory, [&](Work w) {
    w.t.partial = reinterpret_cast<const __nv_bfloat16*>(w.buffer[w.rank]);
    with_packs(w.cols, [&](auto packs) {
      norm_kernel<packs><<<static_cast<unsigned>(w.rows), threads_for(w.cols), 0, stream>>>(w);
    });
  });
}

inline const Stage<NcclRmsNorm> stage{
    "01_all_reduce", "ncclAllReduce, then a kernel for residual and norm", launch, {0, refuses}};

}  // namespace ladder::tensor_parallel::all_reduce
