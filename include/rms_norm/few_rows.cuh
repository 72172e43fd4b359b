// The kernel behind backward.cuh for few rows, all of which are on the GPU at once.
//
// Blocks of a cluster share the columns instead of the rows. A thread has two packs of each of its rows in registers, and
// so one block has whole columns of all rows of its cluster: what is left of dweight is a sum over its own threads. The
// blocks exchange the sums of rows, two numbers of each. Row sums have the order of row_gradients.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gradients.cuh"

namespace rms_norm::detail {

constexpr int kFewThreads = 512;

template <int kPackElements, int kRowsOfThread, bool kIsAligned>
struct FewShape {
  static constexpr int N = kPackElements, kRows = kRowsOfThread;
  static constexpr bool kAligned = kIsAligned;
};

// blockDim = (the block's share of the threads of a row, rows at a time). row_warps are the warps that row_gradients has
// for a row.
template <class Shape, class X, class W, class Y>
__global__ void __launch_bounds__(kFewThreads) few_row_gradients(const BackwardProblem<X, W, Y> p, int row_warps) {
  constexpr int N = Shape::N, kVectors = 2, kRows = Shape::kRows;
  constexpr bool kAligned = Shape::kAligned;
  using Numbers = float[2][kGradientWarps];  // of a row: the squares and the products of each warp
  extern __shared__ uint4 shared_memory[];
  __shared__ uint64_t arrived[2];

  const int parts = p.parts, part = parts == 1 ? 0 : static_cast<int>(blockIdx.x) % parts;
  const int64_t group = parts == 1 ? blockIdx.x : blockIdx.x / parts, groups = gridDim.x / parts;
  const int own_warps = blockDim.x / 32, lane = threadIdx.x % 32, half = lane / 16;
  const int warp = part * own_warps + static_cast<int>(threadIdx.x) / 32;  // of the row
  const int slots = blockDim.y * kRows;
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const auto numbers_of = [&](int box, int row) -> Numbers& {
    return reinterpret_cast<Numbers*>(shared_memory)[box * slots + row * blockDim.y + threadIdx.y];
  };
  const auto pack_of = [&](int v) { return 32 * (warp + v * row_warps) + lane; };
  const auto element_of = [&](int v) { return static_cast<int64_t>(pack_of(v)) * N; };
  const auto count_of = [&](int v) { return static_cast<int>(min(int64_t{N}, p.cols - element_of(v))); };
  const auto has = [&](int v) { return warp < row_warps && pack_of(v) < p.packs; };
  const auto load_any = [&](const auto* row, int v) {
    if constexpr (kAligned)
      return load_constant<N>(row + element_of(v));
    else
      return load_some<N>(row + element_of(v), count_of(v));
  };

  Pack<W, N> weight[kVectors] = {};
  if (p.weight != nullptr)
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (has(v)) weight[v] = load_any(p.weight, v);
  const Mailboxes<2> boxes{arrived};
  if (parts > 1) boxes.open();
  if (p.dependent) wait_for_previous_kernel();
  let_next_kernel_start();

  float dweight[kVectors][N] = {};
  const int64_t step = groups * slots;
  int turn = 0;
  for (int64_t begin = group * slots; begin < p.rows; begin += step, ++turn) {
    const int box = turn % 2;
    const auto number_of = [&](int row) { return begin + row * blockDim.y + threadIdx.y; };
    Pack<X, N> x[kRows][kVectors] = {};
    Pack<Y, N> dy[kRows][kVectors] = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (number_of(r) < p.rows) {
        const RowPlace place = place_of(number_of(r), p.heads);
#pragma unroll
        for (int v = 0; v < kVectors; ++v)
          if (has(v)) x[r][v] = load_any(p.x.row(place), v), dy[r][v] = load_any(p.dy.row(place), v);
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
          squares[v] = add_square(value[k], squares[v]);
          products[v] += value[k] * (from_y[k] * (factor[k] + p.weight_offset));
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
      const float rstd = rsqrtf(sums.squares * p.inverse_cols + p.eps);
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
        if (p.dsum.data != nullptr) unpack(load_any(p.dsum.row(place), v), added);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          dweight[v][k] += from_y[k] * (value[k] * rstd);
          value[k] = rstd * (from_y[k] * (factor[k] + p.weight_offset) - value[k] * slope);
          if (p.dsum.data != nullptr) value[k] += added[k];
        }
        const Pack<X, N> rounded = round_to<X>(value);
        if constexpr (kAligned)
          store<true>(p.dx.row(place) + element_of(v), rounded, p.writes);
        else
          store_some(p.dx.row(place) + element_of(v), rounded, count_of(v));
      }
    }
  }

  if (p.dweight == nullptr) return;
  float* const partial = p.partial ? p.partial + group * p.pitch : nullptr;
  const auto write = [&](int v, const float (&sum)[N]) {
    if (partial)
      store<false>(partial + element_of(v), round_to<float>(sum));
    else if constexpr (kAligned)
      store<false>(p.dweight + element_of(v), round_to<W>(sum));
    else
      store_some(p.dweight + element_of(v), round_to<W>(sum), count_of(v));
  };
  if (blockDim.y == 1) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (has(v)) write(v, dweight[v]);
    return;
  }
  // The threads of one column are as far apart in shared memory as a row is wide.
  float* const of_rows = reinterpret_cast<float*>(shared_memory);
  const int width = blockDim.x * kVectors * N;
  __syncthreads();
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    auto* const to = reinterpret_cast<float4*>(of_rows + threadIdx.y * width + (v * blockDim.x + threadIdx.x) * N);
#pragma unroll
    for (int k = 0; k < N; k += 4)
      to[k / 4] = {dweight[v][k], dweight[v][k + 1], dweight[v][k + 2], dweight[v][k + 3]};
  }
  __syncthreads();
  for (int i = tid; i < width; i += blockDim.x * blockDim.y) {
    const int pack = i / N, v = pack / static_cast<int>(blockDim.x), of_part = pack % static_cast<int>(blockDim.x);
    const int of_row = part * own_warps + of_part / 32;
    const int64_t column = (int64_t{32} * (of_row + v * row_warps) + of_part % 32) * N + i % N;
    if (of_row >= row_warps || column >= p.cols) continue;
    float sum = 0.0f;
#pragma unroll 8
    for (int k = 0; k < static_cast<int>(blockDim.y); ++k) sum += of_rows[k * width + i];
    if (partial)
      partial[column] = sum;
    else
      p.dweight[column] = rounded_to<W>(sum);
  }
}

}  // namespace rms_norm::detail
