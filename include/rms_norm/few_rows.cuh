// The kernel behind backward.cuh for few rows, all of which are on the GPU at once.
//
// Such a call takes as long as one thread does: it loads, its row is added up, it stores. So a thread has one pack of a
// row, the loads do not wait for each other, and no block has a second turn. Blocks of a cluster share the columns
// instead of the rows, and so one block has whole columns of all rows of its cluster: what is left of dweight is a sum
// over its own threads. The blocks exchange the sums of rows, two numbers of each. Row sums have the order of
// row_gradients.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "gradients.cuh"
#include "launch.cuh"

namespace rms_norm {

// An entry of a policy's tables: kFewRows, and kFewRowsWithRstd where the forward pass has stored rstd, since dweight
// then need not wait for dx. It is for rows of up to most_warps · 64 packs and up to most_rows of them: each
// cluster of `parts` blocks takes `rows` · rows_of_thread rows, of which a thread has one or two. With parts = 0, a
// block has whole rows, one after the other, and a multiprocessor has `rows` times eight warps; so it is, with eight
// warps, where an entry needs more warps than a block may have, and, with whole rows, where they have at most 128 packs
// of 16-bit elements, since a thread then needs most of the registers. Rows of up to 64 packs need no entry.
struct FewRows {
  int most_warps;
  int64_t most_rows;
  int parts, rows = 1, rows_of_thread = 1;
};

namespace detail {

constexpr int kFewThreads = 1024;  // of a block, at most
constexpr int kShortPacks = 64;    // of a row that a warp has with two packs in each thread, at most

// Of things that are shared out as evenly as they can be, the largest share.
inline int64_t largest_share(int64_t things, int64_t shares) { return (things + shares - 1) / shares; }

inline int few_rows_warps(int packs) { return (packs + 63) / 64; }
// The threads that row_gradients has for a row, and the packs of each.
inline int few_rows_vectors(int packs) { return packs > kShortPacks && packs <= 2 * kShortPacks ? 4 : 2; }
inline int few_rows_threads(int packs) {
  return packs <= 2 * kShortPacks ? threads_of(packs, few_rows_vectors(packs), 32) : 32 * few_rows_warps(packs);
}
inline int few_rows_block(int parts, int packs) {  // the warps of a block that share a row
  const int threads = few_rows_threads(packs) * few_rows_vectors(packs);
  return static_cast<int>(largest_share(largest_share(threads, 32), parts));
}

template <class Policy, bool kStoredRstd>
constexpr const auto& few_rows_table() {
  if constexpr (kStoredRstd)
    return Policy::kFewRowsWithRstd;
  else
    return Policy::kFewRows;
}

// A table's entry for so many rows and at most so many clusters; whole rows and eight warps if there is none that fits.
template <class Table>
FewRows few_rows(const Table& table, int64_t rows, int packs, int64_t most_clusters, bool has_clusters) {
  if (packs <= kShortPacks) {
    // One block, which writes dweight, if it has so few warps; else about 64 blocks, of 4 to 16 warps.
    constexpr int64_t kMostRows = 2048, kAlone = 16, kBlocks = 64;
    const int own_warps = few_rows_block(1, packs);
    const int64_t warps = own_warps * rows, fours = std::clamp<int64_t>(largest_share(warps, 4 * kBlocks), 1, 4);
    const int64_t at_once = warps <= kAlone ? rows : 4 * fours / own_warps;
    if (rows > kMostRows || largest_share(rows, at_once) > most_clusters) return {};
    return {1, rows, 1, static_cast<int>(at_once)};
  }
  for (FewRows found : table) {
    if (few_rows_warps(packs) > found.most_warps || rows > found.most_rows) continue;
    if (found.parts < 1) return found;
    if (found.parts > 1 && !has_clusters) continue;
    found.rows = static_cast<int>(std::min<int64_t>(found.rows, largest_share(rows, found.rows_of_thread)));
    const int own_warps = few_rows_block(found.parts, packs);
    if (own_warps * found.parts > kFewThreads / 32 || own_warps * found.rows > kFewThreads / 32 ||
        largest_share(rows, int64_t{found.rows} * found.rows_of_thread) > most_clusters)
      break;
    return found;
  }
  return {};
}

// What a kernel reads first comes first, for the reason that stands at Problem. The rows have no gaps between heads.
template <class X, class W, class Y, bool kStoredRstd>
struct FewRowsProblem {
  using Input = X;
  using Weight = W;
  using Output = Y;
  static constexpr bool kHasRstd = kStoredRstd;
  const X* x;
  int64_t x_stride;
  const Y* dy;
  int64_t dy_stride;
  const W* weight;
  int rows, packs;
  cuda::access_property cache;
  int row_threads;  // that row_gradients has for a row
  bool dependent, lets_next_start, adds;
  float inverse_cols, eps, weight_offset;
  X* dx;
  int64_t dx_stride;
  float* partial;
  W* dweight;
  int64_t pitch;
  const X* dsum;
  int64_t dsum_stride;
  const float* rstd;
};

// kHasWholeRows: a block has whole rows, of at most twice kShortPacks packs, and a thread has one row. A kernel of its
// own, since the code that only clusters need would cost such a short call time.
template <int kPackElements, int kVectorsOfRow, int kRowsOfThread, bool kHasWholeRows = false>
struct FewShape {
  // kVectors: the packs that a thread of row_gradients has of such a row. A warp has those of kRowThreads of them.
  static constexpr int N = kPackElements, kVectors = kVectorsOfRow, kRows = kRowsOfThread, kRowThreads = 32 / kVectors;
  static constexpr bool kWhole = kHasWholeRows;
  static constexpr int kMostWarps = kWhole ? kVectors : kFewThreads / 32;  // of a row
  using Numbers = float[2][kMostWarps];                                    // of a row: each warp's squares and products
  static int shared_bytes(int own_warps, int rows) {
    return std::max(rows * kRows * static_cast<int>(sizeof(Numbers)),
                    32 * own_warps * rows * N * static_cast<int>(sizeof(float)));
  }
};

// gridDim = (blocks of a cluster, clusters), blockDim = (the block's share of the threads of a row, rows at a time).
template <class Shape, class P>
__global__ void __launch_bounds__(kFewThreads) few_row_gradients(const P p) {
  using X = typename P::Input;
  using W = typename P::Weight;
  using Y = typename P::Output;
  constexpr int N = Shape::N, kRows = Shape::kRows, kRowThreads = Shape::kRowThreads;
  using Numbers = typename Shape::Numbers;
  extern __shared__ uint4 shared_memory[];
  __shared__ uint64_t arrived;

  const int parts = Shape::kWhole ? 1 : static_cast<int>(gridDim.x);
  const int part = Shape::kWhole ? 0 : static_cast<int>(blockIdx.x);
  const int own_warps = blockDim.x / 32, lane = threadIdx.x % 32, half = lane / 16;
  const int warp = part * own_warps + static_cast<int>(threadIdx.x) / 32;  // of the row
  const int tid = threadIdx.y * blockDim.x + threadIdx.x;
  const unsigned first_row = blockIdx.y * blockDim.y * kRows + threadIdx.y;
  // Lane 16 has the second pack of a thread of row_gradients, and if that has four, lanes 8 and 24 the last two.
  constexpr bool kPartOfWarp = Shape::kWhole && Shape::kVectors == 2;  // a row may have fewer threads than a warp
  const unsigned between = kPartOfWarp ? p.row_threads : 32;
  const auto thread_of = [&](int of_warp, int of_lane) -> unsigned {
    return of_warp * kRowThreads + of_lane % kRowThreads;
  };
  const auto pack_of = [&](int of_warp, int of_lane) {
    const int vector = of_lane / 16 + (Shape::kVectors == 4 ? of_lane / 8 % 2 * 2 : 0);
    return static_cast<int>(pack_in_row<Shape::kVectors>(thread_of(of_warp, of_lane)) + vector * between);
  };
  const auto has = [&](int of_warp, int of_lane, int pack) {
    const int thread = kPartOfWarp ? thread_of(of_warp, of_lane) : of_warp * kRowThreads;
    return thread < p.row_threads && pack < p.packs;
  };
  const auto row_of = [&](int r) { return static_cast<int64_t>(first_row + r * blockDim.y); };
  const int pack = pack_of(warp, lane);
  const int64_t element = static_cast<int64_t>(pack) * N;
  const bool has_pack = has(warp, lane, pack);

  Pack<X, N> x[kRows] = {}, dsum[kRows] = {};
  Pack<Y, N> dy[kRows] = {};
  [[maybe_unused]] float stored_rstd[kRows] = {};
  const auto load_rows = [&] {
    if (p.dependent) wait_for_previous_kernel();
    if (p.lets_next_start) let_next_kernel_start();
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const auto row = row_of(r);
      if (row >= p.rows) continue;
      if (!has_pack) continue;
      x[r] = load<N, true>(p.x + row * p.x_stride + element, p.cache);
      dy[r] = load<N, true>(p.dy + row * p.dy_stride + element, p.cache);
      if constexpr (P::kHasRstd) stored_rstd[r] = p.rstd[row];
      if (p.adds) dsum[r] = load<N, true>(p.dsum + row * p.dsum_stride + element, p.cache);
    }
  };
  // The rows take longest to come. Only what need not wait for the kernel before comes ahead of them.
  if (!p.dependent) load_rows();
  Pack<W, N> weight = {};
  if (p.weight != nullptr && has_pack) weight = load_constant<N>(p.weight + element);
  const Mailboxes<1> box{&arrived};
  if (parts > 1) box.open();
  if (p.dependent) load_rows();

  const auto numbers_of = [&](int r) -> Numbers& {
    return reinterpret_cast<Numbers*>(shared_memory)[r * blockDim.y + threadIdx.y];
  };
  if (parts > 1) {
    box.wait_until_open();
    if (tid == 0) box.expect(0, static_cast<int>(blockDim.y * kRows * parts * own_warps * sizeof(RowSums)));
  }
  float factor[N];
  unpack(weight, factor);
#pragma unroll
  for (int k = 0; k < N; ++k) factor[k] += p.weight_offset;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float value[N], from_y[N], squares = 0.0f, products = 0.0f;
    unpack(x[r], value);
    unpack(dy[r], from_y);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (!P::kHasRstd) squares = add_square(value[k], squares);
      products = add_product(value[k], from_y[k] * factor[k], products);
    }
    // The packs of a thread of row_gradients, then neighbouring lanes.
    float mine = half == 0 ? squares : products;
    mine += __shfl_xor_sync(0xffffffffu, half == 0 ? products : squares, 16);
    if constexpr (Shape::kVectors == 4) mine += __shfl_xor_sync(0xffffffffu, mine, 8);
#pragma unroll
    for (int mask = 1; mask < kRowThreads; mask *= 2) mine += __shfl_xor_sync(0xffffffffu, mine, mask);
    float* const to = &numbers_of(r)[half][warp];
    if (parts == 1) {
      if (lane % 16 == 0) {
        *to = mine;
        if (Shape::kMostWarps == 2 && own_warps == 1) to[1] = 0.0f;
      }
    } else if (lane % 16 < parts) {
      box.send(to, lane % 16, 0, mine);
    }
  }
  if (parts == 1)
    __syncthreads();
  else
    box.wait(0, 0);

  float dweight[N] = {};
  [[maybe_unused]] const int pairs = p.row_threads / kRowThreads / 2;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const Numbers& numbers = numbers_of(r);
    RowSums sums;
    if constexpr (Shape::kWhole) {
      sums = {sum_of_shared<Shape::kMostWarps>(numbers[0]), sum_of_shared<Shape::kMostWarps>(numbers[1])};
    } else {
      float mine = lane % 16 < pairs ? numbers[half][lane % 16 * 2] + numbers[half][lane % 16 * 2 + 1] : 0.0f;
#pragma unroll
      for (int mask = 1; mask < 16; mask *= 2) mine += __shfl_xor_sync(0xffffffffu, mine, mask);
      const float other = __shfl_xor_sync(0xffffffffu, mine, 16);
      sums = half == 0 ? RowSums{mine, other} : RowSums{other, mine};
    }
    const float rstd = P::kHasRstd ? stored_rstd[r] : rstd_of(sums.squares, p.inverse_cols, p.eps);
    const float slope = sums.products * p.inverse_cols * rstd * rstd;
    if (row_of(r) >= p.rows || !has_pack) continue;
    float value[N], from_y[N], added[N];
    unpack<(kRows > 1)>(x[r], value);
    unpack<(kRows > 1)>(dy[r], from_y);
    unpack(dsum[r], added);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      dweight[k] += from_y[k] * (value[k] * rstd);
      value[k] = gradient_of(value[k], from_y[k] * factor[k], rstd, slope, added[k]);
    }
    store<true>(p.dx + row_of(r) * p.dx_stride + element, round_to<X>(value), p.cache);
  }

  if (p.dweight == nullptr) return;
  float* const partial = p.partial ? p.partial + blockIdx.y * p.pitch : nullptr;
  const auto write = [&](int64_t column, const auto& sum) {
    if (partial)
      store<false>(partial + column, round_to<float>(sum));
    else
      store<false>(p.dweight + column, round_to<W>(sum));
  };
  if (blockDim.y == 1) {
    if (has_pack) write(element, dweight);
    return;
  }
  // A thread adds up what the threads of a column have, for four columns at a time.
  constexpr int kFours = N / 4;
  auto* const of_rows = reinterpret_cast<float4*>(shared_memory);
  const int lanes = static_cast<int>(blockDim.x), width = lanes * kFours;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kFours; ++k) {
    const float* const four = dweight + 4 * k;
    of_rows[threadIdx.y * width + k * lanes + threadIdx.x] = {four[0], four[1], four[2], four[3]};
  }
  __syncthreads();
  for (int i = tid; i < width; i += lanes * blockDim.y) {
    const int k = i >= lanes, thread = i - k * lanes, of_warp = part * own_warps + thread / 32;
    const int of_thread = pack_of(of_warp, thread % 32);
    if (!has(of_warp, thread % 32, of_thread)) continue;
    float4 sum = of_rows[i];
#pragma unroll 4
    for (int y = 1; y < static_cast<int>(blockDim.y); ++y) {
      const float4 four = of_rows[y * width + i];
      sum.x += four.x, sum.y += four.y, sum.z += four.z, sum.w += four.w;
    }
    const float total[4] = {sum.x, sum.y, sum.z, sum.w};
    write(static_cast<int64_t>(of_thread) * N + 4 * k, total);
  }
}

}  // namespace detail
}  // namespace rms_norm
