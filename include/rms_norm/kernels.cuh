// The kernels behind rms_norm.cuh. A row is read once, if it fits into the registers and the shared memory of the
// threads that share it: those of a warp, of a block, of a cluster, or of the whole GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "packs.cuh"
#include "shape.cuh"
#include "sums.cuh"

namespace rms_norm::detail {

// --- A problem and its rows ------------------------------------------------------------------------------------------

// From one row to the next, and from one head to the next, in elements.
struct Steps {
  int64_t row = 0, head = 0;
};

// Of row `number`, where heads are the inner direction.
struct RowPlace {
  int64_t token, head;
};
__host__ __device__ inline RowPlace place_of(int64_t number, int64_t heads) {
  if (heads == 1) return {number, 0};
  if ((number | heads) >> 32 == 0) {
    const unsigned token = static_cast<unsigned>(number) / static_cast<unsigned>(heads);
    return {token, static_cast<unsigned>(number) - token * static_cast<unsigned>(heads)};
  }
  return {number / heads, number % heads};
}

// R is void if no residual is added. What every kernel reads comes first: the arguments of a kernel are read through
// the constant cache, and each further line of it costs a short kernel a tenth of a microsecond.
template <class X, class R, class W, class Y>
struct Problem {
  static constexpr bool kAdds = !std::is_void_v<R>, kStoresRstd = false;
  using Norm = Problem;
  using Input = X;
  using Kept = std::conditional_t<kAdds, R, X>;  // what is normalized
  static constexpr int kReads = kAdds ? 2 : 1;   // tensors, beside the weight
  const X* x;
  const W* weight;
  Y* y;
  int packs = 0;                                       // per row, if a row fits into registers
  float inverse_cols = 0, eps = 0, weight_offset = 0;  // 1 without a weight
  bool round_first = false, dependent = false;
  const R* residual = nullptr;
  R* residual_out = nullptr;
  cuda::access_property reads = {}, writes = {};  // how long L2 keeps what is read, and what is written
  int64_t rows = 0, cols = 0;                     // rows per head, of which there are `heads`
  Steps x_steps = {}, y_steps = {}, residual_steps = {}, residual_out_steps = {};
  unsigned heads = 1;
  uint64_t* workspace = nullptr;

  // One thread of a row calls it. StoringProblem has one that does something.
  __device__ void store_rstd(unsigned, float) const {}
};

// A problem whose rows' rstd is stored, too. It is a type of its own, so that kernels that store none stay as they are.
template <class P>
struct StoringProblem : P {
  static constexpr bool kStoresRstd = true;
  float* rstd = nullptr;
  Steps rstd_steps = {};

  __device__ void store_rstd(unsigned number, float of_row) const {
    rstd[number * rstd_steps.row + blockIdx.y * rstd_steps.head] = of_row;
  }
};

// How often a result is rounded. body(rounded) is compiled for both, and a kernel decides once.
enum class Rounded { once, twice };
template <class P, class Body>
__device__ void with_rounding(const P& p, Body body) {
  if (p.round_first)
    body(std::integral_constant<Rounded, Rounded::twice>());
  else
    body(std::integral_constant<Rounded, Rounded::once>());
}

// Row `number` of a problem, from its element `first` on, in packs of N. blockIdx.y is the head. A contiguous problem
// is what a kernel between two others has: x was just written, y is read next, and both are left to L2 as they are. Its
// residual is read again by the next layer, long after.
template <int N, Access access, class P>
struct Row;
template <int N, Access access, class X, class R, class W, class Y>
struct Row<N, access, Problem<X, R, W, Y>> {
  static constexpr bool kContiguous = access == Access::contiguous, kUnaligned = access == Access::unaligned;
  using P = Problem<X, R, W, Y>;
  using Kept = Pack<typename P::Kept, N>;
  using Residual = std::conditional_t<P::kAdds, Kept, int>;
  const P& p;
  const X* x;
  const W* weight;
  const R* residual = nullptr;
  R* residual_out = nullptr;
  Y* y;
  cuda::access_property reads;

  __device__ Row(const P& problem, unsigned number, int64_t first = 0) : p(problem), reads(problem.reads) {
    const auto begin = [&](const Steps& steps) {
      if (kContiguous) return static_cast<int64_t>(uint64_t{number} * static_cast<unsigned>(p.packs * N));
      return number * steps.row + blockIdx.y * steps.head + first;
    };
    x = p.x + begin(p.x_steps);
    weight = p.weight + first;
    y = p.y + begin(p.y_steps);
    if constexpr (P::kAdds) {
      residual = p.residual + begin(p.residual_steps);
      residual_out = p.residual_out + begin(p.residual_out_steps);
    }
  }

  // The same row, element by element and from another element on.
  __device__ detail::Row<1, access, P> elements(int64_t from) const {
    detail::Row<1, access, P> row(p, 0);
    row.x = x + from, row.weight = weight + from, row.y = y + from;
    if constexpr (P::kAdds) row.residual = residual + from, row.residual_out = residual_out + from;
    return row;
  }
  // On to the row that is `rows` rows further: of y, which is stored when the sum of squares is known; and of the other
  // tensors.
  __device__ void advance_output(unsigned rows) { y += rows * p.y_steps.row; }
  __device__ void advance_input(unsigned rows) {
    x += rows * p.x_steps.row;
    if constexpr (P::kAdds) residual += rows * p.residual_steps.row, residual_out += rows * p.residual_out_steps.row;
  }

  __device__ auto load_x(int64_t i) const { return load<N, !kContiguous>(x + i * N, reads); }
  // Asks L2 for the line of 128 bytes that the pack is in. That is allowed before wait_for_previous_kernel(), also if
  // that kernel writes x: no register and no L1 cache gets a value, and L2 is where its writes arrive.
  __device__ void prefetch(int64_t i) const {
    cuda::apply_access_property(x + i * N, 1, cuda::access_property::normal());
    if constexpr (P::kAdds) cuda::apply_access_property(residual + i * N, 1, cuda::access_property::normal());
  }
  __device__ Residual load_residual(int64_t i) const {
    if constexpr (P::kAdds)
      return load<N, true>(residual + i * N, reads);
    else
      return 0;
  }
  template <bool hinted>
  __device__ void store_sum(int64_t i, const Kept& sum) const {
    if constexpr (P::kAdds) store<hinted>(residual_out + i * N, sum, p.writes);
  }
  // x + residual, rounded; x itself where there is none.
  __device__ static Kept add(const Pack<X, N>& x_pack, const Residual& residual_pack) {
    if constexpr (std::is_same_v<X, R> && adds_in_pairs<R>) {
      return add_in_pairs(x_pack, residual_pack);
    } else if constexpr (P::kAdds) {
      float sum[N], addend[N];
      unpack(x_pack, sum);
      unpack(residual_pack, addend);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += addend[k];
      return round_to<R>(sum);
    } else {
      return x_pack;
    }
  }
  // Zeros if there is no weight, and weight_offset is 1 then.
  __device__ Pack<W, N> load_weight(int64_t i) const {
    if (p.weight == nullptr) return {};
    if constexpr (kUnaligned && N > 1)
      return load_unaligned<N>(weight + i * N);
    else
      return load_constant<N>(weight + i * N);
  }
  // What add() gave, from memory.
  __device__ Kept load_again(int64_t i) const {
    if constexpr (P::kAdds)
      return load<N>(residual_out + i * N);
    else
      return load<N>(x + i * N);
  }
  __device__ float rstd(float sum) const { return rsqrtf(sum * p.inverse_cols + p.eps); }
  // weight_offset + weight, for a thread that uses it for many rows.
  struct Factors {
    float of[N];
  };
  __device__ Factors factors(const Pack<W, N>& weights) const {
    Factors factors;
    unpack(weights, factors.of);
#pragma unroll
    for (int k = 0; k < N; ++k) factors.of[k] = p.weight_offset + factors.of[k];
    return factors;
  }
  template <Rounded rounded, class Weights>  // Pack<W, N>, or Factors
  __device__ Pack<Y, N> output(const Kept& input, float rstd, const Weights& weights) const {
    constexpr bool kReady = std::is_same_v<Weights, Factors>;
    float value[N];
    [[maybe_unused]] float weight_of[N];
    unpack<true>(input, value);
    if constexpr (!kReady) unpack(weights, weight_of);
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] *= rstd;
    if constexpr (rounded == Rounded::twice) unpack(round_to<Y>(value), value);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if constexpr (kReady)
        value[k] *= weights.of[k];
      else
        value[k] *= p.weight_offset + weight_of[k];
    }
    return round_to<Y>(value);
  }
  // input · (weight_offset + weight): what there is to compute of an output that is rounded once, before rstd is known.
  // Times 2^24, so that a product of small numbers keeps its digits. One beyond 2e31 becomes infinite.
  struct Products {
    static constexpr float kScale = 1 << 24;
    float of[N];
  };
  __device__ static Products products(const Kept& input, const Pack<W, N>& weights, float scaled_offset) {
    Products products;
    float weight_of[N];
    unpack(input, products.of);
    unpack(weights, weight_of);
#pragma unroll
    for (int k = 0; k < N; ++k) products.of[k] *= fmaf(weight_of[k], Products::kScale, scaled_offset);
    return products;
  }
  __device__ static Pack<Y, N> output(const Products& products, float rstd) {
    float value[N];
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] = products.of[k] * (rstd / Products::kScale);
    return round_to<Y>(value);
  }
  __device__ void store_y(int64_t i, const Pack<Y, N>& pack) const { store<!kContiguous>(y + i * N, pack, p.writes); }
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

// The packs of a row that a thread keeps in registers: every threads-th of the first `packs`, and at most kVectors.
template <int N, int kVectors, Access access, class P>
struct Share;
template <int N, int kVectors, Access access, class X, class R, class W, class Y>
struct Share<N, kVectors, access, Problem<X, R, W, Y>> {
  static constexpr bool kWeightFirst = kVectors * sizeof(Pack<W, N>) <= 64;  // as far as registers go
  using Row = detail::Row<N, access, Problem<X, R, W, Y>>;
  int threads;
#ifdef __SIMT__  // g++ 14 warns that threads past the row's end read it; what they compute is not stored
  Pack<W, N> weight[kVectors] = {};
#else
  Pack<W, N> weight[kVectors];
#endif
  Pack<X, N> x[kVectors];
  typename Row::Residual residual[kVectors];
  typename Row::Kept input[kVectors];  // x + residual
  typename Row::Products products[kVectors];

  __device__ explicit Share(int count) : threads(count) {}

  // visit(v, i) for the thread's v-th pack, which is the row's i-th.
  template <int count = kVectors, class Visit>
  __device__ void for_each(int packs, Visit visit) const {
#pragma unroll
    for (int v = 0; v < count; ++v)
      if (const int i = threadIdx.x + v * threads; i < packs) visit(v, i);
  }
  // The weight of the packs from the row's element `first` on. It comes before everything that other kernels write.
  template <bool now = kWeightFirst>
  __device__ void load_weight(const Problem<X, R, W, Y>& p, int64_t first, int packs) {
    if constexpr (!now) return;
    if constexpr (access == Access::contiguous) {  // no branch: in a short kernel, a load that starts late is felt
#pragma unroll
      for (int v = 0; v < kVectors; ++v) weight[v] = {};
      for_each(p.weight == nullptr ? 0 : packs, [&](int v, int i) { weight[v] = load<N>(p.weight + first + i * N); });
      __syncwarp();  // or nvcc 13.0 moves the loads behind the sum
    } else if (p.weight == nullptr) {
#pragma unroll
      for (int v = 0; v < kVectors; ++v) weight[v] = {};
    } else if constexpr (Row::kUnaligned && N > 1) {
      if (packs == 0) return;
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {  // some packs twice, so that all loads start before the first one ends
        const int i = min(static_cast<int>(threadIdx.x) + v * threads, packs - 1);
        weight[v] = load_unaligned<N>(p.weight + first + i * N);
      }
    } else {
      for_each(packs, [&](int v, int i) { weight[v] = load<N>(p.weight + first + i * N); });
    }
  }
  __device__ void prefetch_input(const Row& row, int packs) const {
    constexpr int kLine = 128 / (N * sizeof(X));  // packs
    for_each(packs, [&](int, int i) {
      if (i % kLine == 0) row.prefetch(i);
    });
  }
  // Loads what is normalized. The loads have ended when add_input() uses what they bring.
  __device__ void load_input(const Row& row, int packs) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) x[v] = {}, residual[v] = {};
    for_each(packs, [&](int v, int i) {
      x[v] = row.load_x(i);
      residual[v] = row.load_residual(i);
    });
  }
  // Returns the sum of the squares of what load_input() loaded.
  template <bool hint_sums = true>
  __device__ float add_input(const Row& row, int packs) {
    float sums[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      input[v] = row.add(x[v], residual[v]);
      sums[v] = sum_of_squares(input[v]);
    }
    for_each(packs, [&](int v, int i) { row.template store_sum<hint_sums>(i, input[v]); });
    return sum_in_pairs(sums);
  }
  __device__ void load_input_again(const Row& row, int packs) {
    for_each(packs, [&](int v, int i) { input[v] = row.load_again(i); });
  }
  // To shared memory, and back from it: each thread reads what it wrote.
  __device__ void save(typename Row::Kept* shared, int packs) const {
    for_each(packs, [&](int v, int i) { shared[i] = input[v]; });
  }
  __device__ void restore(const typename Row::Kept* shared, int packs) {
    for_each(packs, [&](int v, int i) { input[v] = shared[i]; });
  }
  template <Rounded rounded>
  __device__ void store_output(const Row& row, int packs, float rstd) {
    constexpr int kBatch = kWeightFirst || kVectors < 2 ? kVectors : 2;
#pragma unroll
    for (int first = 0; first < kVectors; first += kBatch) {
      if constexpr (!kWeightFirst)
        for_each<kBatch>(packs - first * threads,
                         [&](int v, int i) { weight[first + v] = row.load_weight(i + first * threads); });
#pragma unroll
      for (int v = first; v < first + kBatch; ++v) store_pack<rounded>(row, packs, v, rstd, weight[v]);
    }
  }
  template <Rounded rounded, class Weights>
  __device__ void store_pack(const Row& row, int packs, int v, float rstd, const Weights& weights) {
    store_if_there(row, packs, v, row.template output<rounded>(input[v], rstd, weights));
  }
  // store_output() in two steps, of which the first one needs no rstd, for a result that is rounded once.
  __device__ void multiply(float scaled_offset) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) products[v] = Row::products(input[v], weight[v], scaled_offset);
  }
  __device__ void store_products(const Row& row, int packs, float rstd) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) store_if_there(row, packs, v, row.output(products[v], rstd));
  }

 private:
  __device__ void store_if_there(const Row& row, int packs, int v, const Pack<Y, N>& y) const {
    if (const int i = threadIdx.x + v * threads; i < packs) row.store_y(i, y);
  }
};

// The packs of an unaligned row begin at its first 16-byte boundary. The head elements before them and the tail
// elements after them are fewer than a pack has, and belong to one thread each. An aligned row has neither.
template <int N, Access access, class P>
struct HeadAndTail {
  static constexpr bool kAny = access == Access::unaligned;
  using Row = detail::Row<N, access, P>;
  using Share = detail::Share<1, 1, access, P>;
  int head = 0, tail = 0;
  int64_t packs;
  Share head_share{0}, tail_share{0};

  __device__ HeadAndTail(const P& p, unsigned number, int64_t aligned_packs) : packs(aligned_packs) {
    if constexpr (kAny) {
      const auto address = reinterpret_cast<uintptr_t>(Row(p, number).x);
      head = static_cast<int>((16 - address % 16) % 16 / sizeof(*p.x));
      packs = (p.cols - head) / N;
      tail = static_cast<int>(p.cols - head - packs * N);
    }
  }
  // visit(share, elements, count) for the head and for the tail of a row whose packs `row` begins with, if it exists.
  template <class Visit>
  __device__ void for_each(const Row& row, bool exists, Visit visit) {
    if constexpr (kAny) {
      visit(head_share, row.elements(-head), exists ? head : 0);
      visit(tail_share, row.elements(packs * N), exists ? tail : 0);
    }
  }
  __device__ void load_weight(const P& p) {
    if constexpr (kAny) {
      head_share.load_weight(p, 0, head);
      tail_share.load_weight(p, head + packs * N, tail);
    }
  }
  __device__ void load_input(const Row& row, bool exists) {
    for_each(row, exists, [](Share& share, const auto& elements, int count) { share.load_input(elements, count); });
  }
  __device__ float add_input(const Row& row, bool exists) {
    float sum = 0.0f;
    for_each(row, exists,
             [&](Share& share, const auto& elements, int count) { sum += share.add_input(elements, count); });
    return sum;
  }
  template <Rounded rounded>
  __device__ void store_output(const Row& row, bool exists, float rstd) {
    for_each(row, exists, [&](Share& share, const auto& elements, int count) {
      share.template store_output<rounded>(elements, count, rstd);
    });
  }
};

// Unaligned rows of few packs per thread come in turn to the same threads, which keep their part of the weight (it is
// not aligned, so that loading it takes long) and begin to load the next row before they know this one's sum. Not those
// of float32 with one pack per thread, which need all threads that there can be. N elements are a pack, and `packs` are
// those of all tensors that a thread reads.
template <Access access, int N, int packs>
constexpr bool in_turn = access == Access::unaligned && (N == 8 ? packs <= 2 : N == 4 && packs == 2);
constexpr int kTurnThreads = 1024;  // per multiprocessor, which leaves each 64 registers
constexpr int kTurnRows = 8;  // a multiple of them is between two rows of a thread, so that both are aligned alike

// The most threads of a block, if a row has at most row_threads.
template <int row_threads>
constexpr int most_threads = row_threads == 32 ? 256 : row_threads;

// How many blocks of a kernel must fit on a multiprocessor; 0 leaves that to the compiler. The kernels of short
// rows issue the most instructions per byte, and want all threads that there can be. Those of a few contiguous rows do
// not fill the GPU, and want registers instead, so that all loads of a thread start before the first one ends.
template <Access access, int N, int row_threads, int packs>
constexpr int least_blocks() {
#if __CUDA_ARCH__ == 800 || __CUDA_ARCH__ == 900 || __CUDA_ARCH__ == 1000
  constexpr int kThreads = 2048;  // of a multiprocessor
#else
  constexpr int kThreads = 1024;
#endif
  constexpr int block = most_threads<row_threads>;
  if (in_turn<access, N, packs>) return kTurnThreads / block;
  if (row_threads == 32) return packs <= 2 && access != Access::unaligned ? kThreads / block : 0;
  return access == Access::contiguous ? kMostThreads / row_threads : 0;
}

// Contiguous rows, of which there are few. A row per block of kRowThreads, or per warp or part of a warp: blockDim =
// (threads per row, rows per block). Short kernels are limited by their longest chain of instructions: so this one is
// compiled for dependent launches and for plain ones, loads all that it needs at once, and does what it can before the
// sum of the row is known.
template <int N, int kVectors, int kRowThreads, bool kDependent, class P>
__global__ void __launch_bounds__(most_threads<kRowThreads>,
                                  least_blocks<Access::contiguous, N, kRowThreads, kVectors * P::kReads>())
    contiguous_rows(const P p) {
  using Share = detail::Share<N, kVectors, Access::contiguous, typename P::Norm>;
  constexpr bool kRowOfBlock = kRowThreads > 32, kAdds = P::kAdds;
  const int threads = kRowOfBlock ? kRowThreads : blockDim.x;
  const unsigned number = kRowOfBlock ? blockIdx.x : blockIdx.x * blockDim.y + threadIdx.y;
  Share share(threads);
  share.load_weight(p, 0, p.packs);
  if (kDependent) wait_for_previous_kernel();
  const typename Share::Row row(p, number);
  const int packs = kRowOfBlock || number < static_cast<unsigned>(p.rows) ? p.packs : 0;
  share.load_input(row, packs);
  // A shuffle, so that nvcc 13.0 reads the offset here, while the loads are on their way, and not at its first use.
  const float scaled_offset = __shfl_sync(0xffffffffu, p.weight_offset * Share::Row::Products::kScale, 0);
  with_rounding(p, [&](auto rounded) {
    constexpr int kMostProducts = kRowThreads == kMostThreads || kAdds ? 16 : 32;  // as far as registers go
    constexpr bool kProducts =
        kRowOfBlock && rounded.value == Rounded::once && Share::kWeightFirst && kVectors * N <= kMostProducts;
    float sum = share.add_input(row, packs);
    const auto multiply = [&] {
      if constexpr (kProducts) share.multiply(scaled_offset);
    };
    if constexpr (kRowOfBlock)
      sum = block_sum<kRowThreads>(sum, multiply);
    else
      sum = warp_sum(sum, threads);
    if (kDependent) let_next_kernel_start();
    const float rstd = row.rstd(sum);
    if constexpr (kProducts)
      share.store_products(row, packs, rstd);
    else
      share.template store_output<rounded.value>(row, packs, rstd);
    if (threadIdx.x == 0 && packs > 0) p.store_rstd(number, rstd);
  });
}

// Rows that may be anywhere. A row per warp, per part of a warp, or per block: blockDim = (threads per row, rows per
// block). blockIdx.y is the head, as in every kernel but contiguous_rows().
template <int N, int kVectors, int kRowThreads, Access access, class P>
__global__ void __launch_bounds__(most_threads<kRowThreads>,
                                  least_blocks<access, N, kRowThreads, kVectors * P::kReads>())
    row_in_registers(const P p) {
  using Norm = typename P::Norm;
  using Share = detail::Share<N, kVectors, access, Norm>;
  constexpr bool kInTurn = in_turn<access, N, kVectors * P::kReads>;
  const int threads = blockDim.x, row_in_block = threadIdx.y;
  unsigned number = blockIdx.x * blockDim.y + row_in_block;
  [[maybe_unused]] const unsigned rows = static_cast<unsigned>(p.rows), step = gridDim.x * blockDim.y;
  HeadAndTail<N, access, Norm> ends(p, number, p.packs);
  Share share(threads);
  const auto load_weight_and_wait = [&] {
    share.load_weight(p, ends.head, static_cast<int>(ends.packs));
    ends.load_weight(p);
    if (p.dependent) wait_for_previous_kernel();
  };
  // The loads of a weight that is not aligned end before the thread goes on. So those of the input begin before them,
  // unless they have to wait. (Threads of float32, of which there are more, have no registers for both.)
  constexpr bool kInputFirst = access == Access::unaligned && N == 8;
  if (!kInputFirst) load_weight_and_wait();

  typename Share::Row row(p, number, ends.head);
  bool has_row = number < rows;  // a thread without a row only has to arrive at the barriers
  const auto packs = [&] { return has_row ? static_cast<int>(ends.packs) : 0; };
  const auto load_input = [&] {
    share.load_input(row, packs());
    ends.load_input(row, has_row);
  };
  if (!kInputFirst || !p.dependent) load_input();
  if (kInputFirst) load_weight_and_wait();
  if (kInputFirst && p.dependent) load_input();
  for (unsigned turn = 0;; ++turn) {
    const bool had_row = has_row;
    const unsigned had_number = number;
    const int row_packs = packs();
    float sum = share.add_input(row, row_packs) + ends.add_input(row, had_row);
    // The next row's loads begin before this row's sum is known.
    const bool is_last = !kInTurn || number - row_in_block + step >= rows;
    if (!is_last) {
      number += step;
      has_row = number < rows;
      row.advance_input(step);
      load_input();
    }
    sum = row_sum<kRowThreads, kRowThreads / (kInTurn ? 32 : 64)>(sum, threads, row_in_block + turn % 2 * blockDim.y);
    if (p.dependent) let_next_kernel_start();
    const float rstd = row.rstd(sum);
    with_rounding(p, [&](auto rounded) {
      share.template store_output<rounded.value>(row, row_packs, rstd);
      ends.template store_output<rounded.value>(row, had_row, rstd);
    });
    if (threadIdx.x == 0 && had_row) p.store_rstd(had_number, rstd);
    if (is_last) return;
    row.advance_output(step);
  }
}

// Long rows: blocks share a row, kParts of them or as many as some_parts says. Each has `part_packs` of its packs, and
// they exchange their sums. A block works through its packs in steps of kVectors per thread. It keeps the packs of the
// first step in registers, which if kWhole are all, and those of the next kept_steps - 1 in shared memory. What is left
// is read again.
template <int N, int kVectors, int kThreads, int kParts, bool kWhole, Access access, class Exchange, class P>
__global__ void __launch_bounds__(kThreads, kWhole || P::kAdds ? 0 : kMostThreads / kThreads)
    row_in_parts(const P p, int64_t part_packs, int some_parts, [[maybe_unused]] int kept_steps) {
  using Share = detail::Share<N, kVectors, access, typename P::Norm>;
  using Row = typename Share::Row;
  extern __shared__ uint4 shared[];
  const unsigned parts = kParts > 0 ? kParts : some_parts;
  const unsigned number = gridDim.x == parts ? 0 : blockIdx.x / parts, part = blockIdx.x - number * parts;
  HeadAndTail<N, access, typename P::Norm> ends(p, number, p.cols / N);
  const int64_t first = part * part_packs, packs = max(int64_t{0}, min(part_packs, ends.packs - first));
  constexpr int kStep = kVectors * kThreads;
  const auto count = [&](int64_t i) { return static_cast<int>(min(packs - i, int64_t{kStep})); };
  const auto element = [&](int64_t i) { return ends.head + (first + i) * N; };
  auto* const saved = reinterpret_cast<typename Row::Kept*>(shared);
  const auto kept = [&](int64_t i) { return saved + (i - kStep); };
  const int64_t kept_packs = static_cast<int64_t>(kept_steps) * kStep;
  const Row row(p, number, element(0));
  Exchange exchange(parts, part, p.workspace);
  Share share(kThreads);
  // Two kernels fit on a multiprocessor if neither has more than half of the threads that there can be at 64 registers
  // each. Only then has this one begun long before the other one ends.
  constexpr bool kAcrossGpu = kParts == 0;
  if (kAcrossGpu && kThreads <= kMostThreads / 2 && p.dependent) share.prefetch_input(row, count(0));
  share.load_weight(p, element(0), count(0));
  ends.load_weight(p);
  if (p.dependent) wait_for_previous_kernel();
  // All blocks across the GPU run at once, so that the next kernel takes nothing away from them.
  if (kAcrossGpu && p.dependent) let_next_kernel_start();

  exchange.begin();
  share.load_input(row, count(0));
  ends.load_input(row, part == 0);
  float sum = share.add_input(row, count(0)) + ends.add_input(row, part == 0);
  for (int64_t i = kStep; !kWhole && i < packs; i += kStep) {
    Row next(p, number, element(i));
    Share step(kThreads);
    if (i < kept_packs) {
      step.load_input(next, count(i));
      sum += step.add_input(next, count(i));
      step.save(kept(i), count(i));
    } else {
      next.reads = cuda::access_property(cuda::access_property::persisting());
      step.load_input(next, count(i));
      sum += step.template add_input<false>(next, count(i));
    }
  }
  sum = exchange.template sum<kThreads>(row_sum<kThreads, 1>(sum));
  if (!kAcrossGpu && p.dependent) let_next_kernel_start();
  const float rstd = row.rstd(sum);
  if (threadIdx.x == 0 && part == 0) p.store_rstd(number, rstd);
  with_rounding(p, [&](auto rounded) {
    share.template store_output<rounded.value>(row, count(0), rstd);
    ends.template store_output<rounded.value>(row, part == 0, rstd);
    // Backwards, since the caches have most of what was read last.
    for (int64_t i = (packs - 1) / kStep * kStep; !kWhole && i >= kStep; i -= kStep) {
      const Row next(p, number, element(i));
      share.load_weight(p, element(i), count(i));
      if (i < kept_packs)
        share.restore(kept(i), count(i));
      else
        share.load_input_again(next, count(i));
      share.template store_output<rounded.value>(next, count(i), rstd);
    }
  });
}

}  // namespace rms_norm::detail
