// The kernel behind backward.cuh for few rows, all of which are on the GPU at once.
//
// Blocks of a cluster share the columns instead of the rows. A thread has two packs of each of its rows in registers,
// and so one block has whole columns of all rows of its cluster: what is left of dweight is a sum over its own threads.
// The blocks exchange the sums of rows, two numbers of each. Row sums have the order of row_gradients.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gradients.cuh"

namespace rms_norm::detail {

constexpr int kFewThreads = 512, kFewWarps = kFewThreads / 32;

// How few rows are shared: by `clusters` clusters of `parts` blocks, which take `rows` · `rows_of_thread` rows at a
// time. parts is 0 where row_gradients takes less time.
struct FewRows {
  int parts = 0, clusters = 0, rows = 0, rows_of_thread = 1;
};
// As measured on an H100: with one cluster there are no partial sums to add up, and of more there are as many as a GPU
// has room for at once. A row's warps should divide evenly among the blocks; else blocks that have whole rows take less
// time.
inline FewRows few_rows(int64_t rows, int packs, bool has_clusters) {
  const int row_warps = (packs + 63) / 64;
  if (!has_clusters || row_warps > kGradientWarps) return {};
  const int count = static_cast<int>(std::min<int64_t>(rows, INT32_MAX));
  if (count == 1) return {(row_warps + 3) / 4, 1, 1, 1};
  const int parts = row_warps <= 4 ? 4 : 8, own_warps = (row_warps + parts - 1) / parts, most = kFewWarps / own_warps;
  if (count <= most) return {parts, 1, std::clamp((count + 3) / 4 * 4, 4, most), 1};
  const auto many = [&](int blocks, int at_once, int of_thread = 1) {
    return FewRows{blocks, (count + at_once * of_thread - 1) / (at_once * of_thread), at_once, of_thread};
  };
  if (own_warps > 1) {
    if (count <= 2 * most) return many(parts, most, 2);
    if (row_warps > 14 && count <= 64) return many(8, 4);
    return count > 64 && count <= 240 ? many(parts, most, 2) : FewRows{};
  }
  if (row_warps > 6 && count <= 96) return many(4, 4);
  if (row_warps < 4 || count <= 96 || count > 128) return {};
  return row_warps == 4 ? many(4, 4) : row_warps > 6 ? many(2, 2) : many(8, 8);
}

template <int kPackElements, int kRowsOfThread>
struct FewShape {
  static constexpr int N = kPackElements, kRows = kRowsOfThread, kVectors = 2;
  using Numbers = float[2][kGradientWarps];  // of a row: the squares and the products of each warp
  static int shared_bytes(int own_warps, int rows) {
    const int of_sums = 2 * rows * kRows * static_cast<int>(sizeof(Numbers));
    return std::max(of_sums, 32 * own_warps * rows * kVectors * N * static_cast<int>(sizeof(float)));
  }
};

// gridDim = (blocks of a cluster, clusters), blockDim = (the block's share of the threads of a row, rows at a time).
// row_warps are the warps that row_gradients has for a row.
template <class Shape, class P>
__global__ void __launch_bounds__(kFewThreads) few_row_gradients(const P p, int row_warps) {
  using X = typename P::Input;
  using W = typename P::Weight;
  using Y = typename P::Output;
  constexpr int N = Shape::N, kVectors = Shape::kVectors, kRows = Shape::kRows;
  using Numbers = typename Shape::Numbers;
  extern __shared__ uint4 shared_memory[];
  __shared__ uint64_t arrived[2];

  const int parts = static_cast<int>(gridDim.x), part = static_cast<int>(blockIdx.x);
  const unsigned group = blockIdx.y, groups = gridDim.y;
  const int own_warps = blockDim.x / 32, lane = threadIdx.x % 32, half = lane / 16;
  const int warp = part * own_warps + static_cast<int>(threadIdx.x) / 32;  // of the row
  const int slots = blockDim.y * kRows;
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const auto numbers_of = [&](int box, int row) -> Numbers& {
    return reinterpret_cast<Numbers*>(shared_memory)[box * slots + row * blockDim.y + threadIdx.y];
  };
  const auto pack_of = [&](int v) { return 32 * (warp + v * row_warps) + lane; };
  const auto element_of = [&](int v) { return static_cast<int64_t>(pack_of(v)) * N; };
  const auto has = [&](int v) { return warp < row_warps && pack_of(v) < p.packs; };
  Pack<W, N> weight[kVectors] = {};
  if (p.weight != nullptr)
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (has(v)) weight[v] = load_constant<N>(p.weight + element_of(v));
  const Mailboxes<2> boxes{arrived};
  if (parts > 1) boxes.open();
  if (p.dependent) wait_for_previous_kernel();
  p.let_next_kernel_start();

  float dweight[kVectors][N] = {};
  const int64_t step = groups * slots;
  int turn = 0;
  for (int64_t begin = group * slots; begin < p.rows; begin += step, ++turn) {
    const int box = turn % 2;
    const auto number_of = [&](int row) { return begin + row * blockDim.y + threadIdx.y; };
    Pack<X, N> x[kRows][kVectors] = {};
    Pack<Y, N> dy[kRows][kVectors] = {};
    [[maybe_unused]] float stored_rstd[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (number_of(r) < p.rows) {
        stored_rstd[r] = p.load_rstd(number_of(r));
        const RowPlace place = place_of(number_of(r), p.heads);
        const X* const of_x = p.x.row(place);
        const Y* const of_y = p.dy.row(place);
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
          if (has(v)) {
            x[r][v] = load<N, true>(of_x + element_of(v), p.reads);
            dy[r][v] = load<N, true>(of_y + element_of(v), p.reads);
          }
      }
    if (parts > 1) {
      if (turn == 0) Mailboxes<2>::wait_until_open();
      if (tid == 0) boxes.expect(box, static_cast<int>(slots * parts * own_warps * sizeof(RowSums)));
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float squares[kVectors] = {}, products[kVectors] = {};
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        float value[N], from_y[N], factor[N];
        unpack(x[r][v], value);
        unpack(dy[r][v], from_y);
        unpack(weight[v], factor);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          if constexpr (!P::kHasRstd) squares[v] = add_square(value[k], squares[v]);
          products[v] = add_product(value[k], from_y[k] * (factor[k] + p.weight_offset), products[v]);
        }
      }
      const RowSums sums = {sum_in_pairs(squares), sum_in_pairs(products)};
      float mine = half == 0 ? sums.squares : sums.products;
      mine += __shfl_xor_sync(0xffffffffu, half == 0 ? sums.products : sums.squares, 16);
#pragma unroll
      for (int mask = 8; mask > 0; mask /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, mask);
      float* const to = &numbers_of(box, r)[half][warp];
      if (parts == 1) {
        if (lane % 16 == 0) *to = mine;
      } else if (lane % 16 < parts) {
        boxes.send(to, lane % 16, box, mine);
      }
    }
    if (parts == 1)
      __syncthreads();
    else
      boxes.wait(box, turn / 2 % 2);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      float mine = lane % 16 < row_warps ? numbers_of(box, r)[half][lane % 16] : 0.0f;
#pragma unroll
      for (int mask = 8; mask > 0; mask /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, mask);
      const float other = __shfl_xor_sync(0xffffffffu, mine, 16);
      const RowSums sums = half == 0 ? RowSums{mine, other} : RowSums{other, mine};
      const float rstd = P::kHasRstd ? stored_rstd[r] : rstd_of(sums.squares, p.inverse_cols, p.eps);
      const float slope = sums.products * p.inverse_cols * rstd * rstd;
      if (number_of(r) >= p.rows) continue;
      const RowPlace place = place_of(number_of(r), p.heads);
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        if (!has(v)) continue;
        float value[N], from_y[N], factor[N], added[N] = {};
        unpack<true>(x[r][v], value);
        unpack<true>(dy[r][v], from_y);
        unpack(weight[v], factor);
        if (p.dsum.data != nullptr) unpack(load<N, true>(p.dsum.row(place) + element_of(v), p.reads), added);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          dweight[v][k] += from_y[k] * (value[k] * rstd);
          value[k] = gradient_of(value[k], from_y[k], factor[k] + p.weight_offset, rstd, slope, added[k]);
        }
        store<true>(p.dx.row(place) + element_of(v), round_to<X>(value), p.writes);
      }
    }
  }

  if (p.dweight == nullptr) return;
  float* const partial = p.partial ? p.partial + group * p.pitch : nullptr;
  const auto write = [&](int64_t element, const auto& sum) {
    if (partial)
      store<false>(partial + element, round_to<float>(sum));
    else
      store<false>(p.dweight + element, round_to<W>(sum));
  };
  if (blockDim.y == 1) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (has(v)) write(element_of(v), dweight[v]);
    return;
  }
  // A thread adds up what the threads of a column have, for four columns at a time.
  constexpr int kFours = N / 4;
  auto* const of_rows = reinterpret_cast<float4*>(shared_memory);
  const int lanes = static_cast<int>(blockDim.x), width = kVectors * lanes * kFours;
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kVectors; ++v)
#pragma unroll
    for (int k = 0; k < kFours; ++k) {
      const float* const four = dweight[v] + 4 * k;
      of_rows[threadIdx.y * width + (v * lanes + threadIdx.x) * kFours + k] = {four[0], four[1], four[2], four[3]};
    }
  __syncthreads();
  for (int i = tid; i < width; i += lanes * blockDim.y) {
    const int of_thread = i / kFours, v = of_thread >= lanes, thread = of_thread - v * lanes;
    const int of_row = part * own_warps + thread / 32, pack = 32 * (of_row + v * row_warps) + thread % 32;
    if (of_row >= row_warps || pack >= p.packs) continue;
    float4 sum = of_rows[i];
#pragma unroll 4
    for (int k = 1; k < static_cast<int>(blockDim.y); ++k) {
      const float4 four = of_rows[k * width + i];
      sum.x += four.x, sum.y += four.y, sum.z += four.z, sum.w += four.w;
    }
    const float total[4] = {sum.x, sum.y, sum.z, sum.w};
    write(static_cast<int64_t>(pack) * N + i % kFours * 4, total);
  }
}

}  // namespace rms_norm::detail
