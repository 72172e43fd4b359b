// What 05_data_is_flag does in its kernel, as functions for the kernels that build on it.
#pragma once

#include "assignment3/tensor_parallel/sentinel.cuh"

namespace ladder::tensor_parallel {

template <int kPacks>
__device__ void push_row(const Work& w, const Turn& turn, int64_t row, const Packs<kPacks>& partial) {
  for (int step = 1; step < w.ranks; ++step) {
    const int peer = (w.rank + step) % w.ranks;  // not all to the same first
    send_row(w, row_in(w.buffer[peer] + turn.now, w, w.rank * w.rows + row), partial);
  }
}

// The sum of a row in the order of the ranks, of which this one's partial result is in registers.
template <int kPacks>
__device__ RowSum<kPacks> received_sum(const Work& w, const Turn& turn, int64_t row, const Packs<kPacks>& partial) {
  RowSum<kPacks> sum = {};
  for (int rank = 0; rank < w.ranks; ++rank) {
    auto part = partial;
    if (rank != w.rank)
      part = arrived_row<kPacks>(w, row_in(w.buffer[w.rank] + turn.now, w, rank * w.rows + row), rank, turn.number);
#pragma unroll
    for (int i = 0; i < kPacks; ++i) add(sum.p[i], part.p[i]);
  }
  return sum;
}

// All rows of a block, in one shot. warp_sums: two in turn, so that a row needs no barrier after its sum.
template <int kPacks>
__device__ void norm_rows_in_one_shot(const Work& w, uint32_t packs, const Packs<kPacks>& weight,
                                      float (&warp_sums)[2][32]) {
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

}  // namespace ladder::tensor_parallel
