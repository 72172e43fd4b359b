// 02_own_rows: an all-reduce is a reduce-scatter and an all-gather, and the norm fits in between: each rank
// norms its own rows, and keeps no more of the residual than those.
//
// It removes the work that all ranks did alike, but launches three times; what it leaves is what NCCL's kernels wait.
#pragma once

#include "assignment3/tensor_parallel/shared.cuh"
#include "common/operators/all_reduce_rms_norm.h"

namespace ladder::tensor_parallel::own_rows {

// Of the rank's own rows, whose sums lie in its symmetric memory.
template <int kPacks>
__global__ void __launch_bounds__(kThreads) own_rows_kernel(const Work w, int64_t first) {
  __shared__ float warp_sums[32];
  const int64_t row = blockIdx.x;
  const Packs<kPacks> sums = load_row<kPacks>(w, w.t.partial, row);
  RowSum<kPacks> sum = {};
#pragma unroll
  for (int i = 0; i < kPacks; ++i) add(sum.p[i], sums.p[i]);
  const auto residual = load_row<kPacks>(w, w.t.residual, row), weight = load_row<kPacks>(w, w.t.weight, 0);
  store_row(w, w.t.y, first + row, normed_row(w, row, sum, residual, weight, warp_sums));
}

inline Workspace workspace;

inline void launch(const AllReduceCall& call, cudaStream_t stream) {
  const int64_t rows = call.rows / call.ranks;  // of each rank
  const size_t count = rows * call.cols;
  if (count == 0) return;
  const Symmetric& memory = workspace.of(call.ranks, count * sizeof(__nv_bfloat16));
  const Communicator& all = Communicator::of(call.ranks);
  for_all_ranks(call.ranks, [&](int rank) {
    NCCL_CHECK(ncclReduceScatter(call.rank[rank].partial, memory.seen[rank][rank], count, ncclBfloat16, ncclSum,
                                 all.comm[rank], stream));
  });
  launch_on_all(call, memory, [&](Work w) {
    w.t.partial = reinterpret_cast<const __nv_bfloat16*>(w.buffer[w.rank]);
    with_packs(w.cols, [&](auto packs) {
      own_rows_kernel<packs><<<static_cast<unsigned>(rows), threads_for(w.cols), 0, stream>>>(w, w.rank * rows);
    });
  });
  for_all_ranks(call.ranks, [&](int rank) {
    __nv_bfloat16* y = call.rank[rank].y;
    NCCL_CHECK(ncclAllGather(y + rank * count, y, count, ncclBfloat16, all.comm[rank], stream));
  });
}

inline const char* refuses_uneven(const Shape& shape) {
  const char* const why = refuses(shape);
  return why ? why
         : shape[0] % shape[2] != 0
             ? "NCCL gives each rank as many rows as every other; give --rows that the ranks divide"
             : nullptr;
}

inline const Stage<NcclRmsNormSharded> stage{
    "02_own_rows", "reduce-scatter, each rank norms its own rows, all-gather", launch, {0, refuses_uneven}};

}  // namespace ladder::tensor_parallel::own_rows
