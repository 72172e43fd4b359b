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

namespace rms_norm {

// An entry of a policy's table kFewRows, for rows of up to most_warps · 64 packs and up to most_rows of them: clusters
// of `parts` blocks take `rows` · rows_of_thread rows at a time (or, of fewer, as many as there are, a multiple of
// four). With parts = 0, blocks have whole rows; so they do where an entry needs more warps than a block may have.
struct FewRows {
  int most_warps;
  int64_t most_rows;
  int parts, rows = 1, rows_of_thread = 1;
};

// As measured on an H100. With one cluster there are no partial sums to add up, and of more there are as many as a GPU
// has room for at once. A row's warps should divide evenly among the blocks; else blocks that have whole rows take less
// time.
struct DefaultGradients {
  static constexpr FewRows kFewRows[] = {
      {4, 1, 1},  {4, 16, 4, 16}, {3, INT64_MAX, 0}, {4, 96, 0},    {4, 128, 4, 4}, {8, 1, 2},          {8, 16, 8, 16},
      {6, 96, 0}, {6, 128, 8, 8}, {6, INT64_MAX, 0}, {8, 96, 4, 4}, {8, 128, 2, 2}, {8, INT64_MAX, 0},  {12, 1, 3},
      {16, 1, 4}, {16, 8, 8, 8},  {16, 16, 8, 8, 2}, {14, 64, 0},   {16, 64, 8, 4}, {16, 240, 8, 8, 2},
  };
};

namespace detail {

constexpr int kFewThreads = 512, kFewWarps = kFewThreads / 32;

inline int few_rows_warps(int packs) { return (packs + 63) / 64; }  // a thread has two packs

// A table's entry for so many rows, with parts = 0 if there is none that fits.
template <class Policy>
FewRows few_rows(int64_t rows, int packs, bool has_clusters) {
  const int warps = few_rows_warps(packs);
  for (FewRows found : Policy::kFewRows) {
    if (!has_clusters || warps > found.most_warps || rows > found.most_rows) continue;
    if (found.parts < 1) break;
    found.rows = static_cast<int>(std::min<int64_t>(found.rows, (rows + 3) / 4 * 4));
    const int own_warps = (warps + found.parts - 1) / found.parts;
    if (own_warps * found.parts > kGradientWarps || own_warps * found.rows > kFewWarps) break;
    return found;
  }
  return {};
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

}  // namespace detail
}  // namespace rms_norm
