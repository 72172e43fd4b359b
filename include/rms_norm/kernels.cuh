// The kernels behind rms_norm.cuh. A row is read once where it fits into the registers of those who share it: threads
// of a warp, of a block, of a cluster, or of the whole GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "packs.cuh"
#include "policy.cuh"
#include "sums.cuh"

namespace rms_norm::detail {

// --- A problem and its rows ------------------------------------------------------------------------------------------

// From one row to the next, and from one head to the next, in elements.
struct Steps {
  int64_t row = 0, head = 0;
};

// R is void where no residual is added. What every kernel reads stands first, within a cache line of the constant
// cache: a line more takes a short kernel a tenth of a microsecond more.
template <class X, class R, class W, class Y>
struct Problem {
  static constexpr bool kAdds = !std::is_void_v<R>;
  const X* x;
  const W* weight;
  Y* y;
  int packs = 0;  // of a row that fits into registers
  float inverse_cols = 0, eps = 0, weight_offset = 0;
  bool round_first = false, dependent = false;
  int64_t rows = 0, cols = 0;  // rows of a head, of which there are `heads`
  const R* residual = nullptr;
  R* residual_out = nullptr;
  Steps x_steps = {}, y_steps = {}, residual_steps = {}, residual_out_steps = {};
  unsigned heads = 1;
  uint64_t* workspace = nullptr;
};

// To hold what is read lets what is written leave L2 first. On an H200 that takes less time than to stream both for
// most of what is larger than the cache; bench/tune measures where.
constexpr Keep reads(Traffic traffic) {
  if (traffic == Traffic::few) return Keep::as_usual;
  return traffic == Traffic::stream ? Keep::shortest : Keep::longest;
}
constexpr Keep writes(Traffic traffic) { return traffic == Traffic::few ? Keep::as_usual : Keep::shortest; }

// What becomes of normalized values. One choice for all of them, so that a kernel branches once.
enum class Finish { no_weight, weight, round_first };
template <class P, class Body>
__device__ void with_finish(const P& p, Body body) {
  if (p.weight == nullptr)
    body(std::integral_constant<Finish, Finish::no_weight>());
  else if (p.round_first)
    body(std::integral_constant<Finish, Finish::round_first>());
  else
    body(std::integral_constant<Finish, Finish::weight>());
}

// Row `number` of a problem from its element `first` on, in packs of N. blockIdx.y is the head.
template <int N, Traffic traffic, class P>
struct Row;
template <int N, Traffic traffic, class X, class R, class W, class Y>
struct Row<N, traffic, Problem<X, R, W, Y>> {
  static constexpr bool kUnaligned = traffic == Traffic::unaligned;
  static constexpr Keep kIn = reads(traffic), kOut = writes(traffic);
  using P = Problem<X, R, W, Y>;
  using Kept = Pack<std::conditional_t<P::kAdds, R, X>, N>;  // what is normalized
  const P& p;
  const X* x;
  const W* weight;
  const R* residual = nullptr;
  R* residual_out = nullptr;
  Y* y;

  __device__ Row(const P& p, unsigned number, int64_t first = 0) : p(p) {
    const auto begin = [&](const Steps& steps) {
      if (traffic == Traffic::few) return number * static_cast<int64_t>(p.packs * N);
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

  __device__ auto load_x(int64_t i) const { return load<N, kIn>(x + i * N); }
  __device__ auto load_residual(int64_t i) const {
    if constexpr (P::kAdds)
      return load<N, kIn>(residual + i * N);
    else
      return 0;
  }
  template <Keep keep>
  __device__ void store_sum(int64_t i, const Kept& sum) const {
    if constexpr (P::kAdds) store<keep>(residual_out + i * N, sum);
  }
  // x + residual, rounded; x itself where there is none.
  template <class Residual>
  __device__ static Kept add(const Pack<X, N>& x_pack, const Residual& residual_pack) {
    if constexpr (P::kAdds) {
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
  template <Finish finish>
  __device__ Pack<W, N> load_weight(int64_t i) const {
    if constexpr (finish == Finish::no_weight)
      return {};
    else if constexpr (kUnaligned && N > 1)
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
  template <Finish finish>
  __device__ Pack<Y, N> output(const Kept& input, float rstd, [[maybe_unused]] const Pack<W, N>& weight) const {
    float value[N];
    unpack<true>(input, value);
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] *= rstd;
    if constexpr (finish == Finish::round_first) unpack(round_to<Y>(value), value);
    if constexpr (finish != Finish::no_weight) {
      float factor[N];
      unpack(weight, factor);
#pragma unroll
      for (int k = 0; k < N; ++k) value[k] *= p.weight_offset + factor[k];
    }
    return round_to<Y>(value);
  }
  __device__ void store_y(int64_t i, const Pack<Y, N>& pack) const { store<kOut>(y + i * N, pack); }
};

// --- Kernels ---------------------------------------------------------------------------------------------------------

// The packs of a row that a thread keeps in registers: each threads-th of the first `packs`, kVectors of them at most.
template <int N, int kVectors, Traffic traffic, class P>
struct Share;
template <int N, int kVectors, Traffic traffic, class X, class R, class W, class Y>
struct Share<N, kVectors, traffic, Problem<X, R, W, Y>> {
  static constexpr bool kWeightFirst = kVectors * sizeof(Pack<W, N>) <= 64;  // as far as registers go
  using Row = detail::Row<N, traffic, Problem<X, R, W, Y>>;
  int threads;
#ifdef __SIMT__  // g++ 14 warns that threads past the row's end read it; what they compute is not stored
  Pack<W, N> weight[kVectors] = {};
#else
  Pack<W, N> weight[kVectors];
#endif
  typename Row::Kept input[kVectors];

  __device__ explicit Share(int threads) : threads(threads) {}

  // visit(v, i) for the thread's v-th pack, which is the row's i-th.
  template <int count = kVectors, class Visit>
  __device__ void for_each(int packs, Visit visit) const {
#pragma unroll
    for (int v = 0; v < count; ++v)
      if (const int i = threadIdx.x + v * threads; i < packs) visit(v, i);
  }
  // Of packs from the row's element `first` on, before anything may be read that other kernels write.
  __device__ void load_weight(const Problem<X, R, W, Y>& p, int64_t first, int packs) {
    if constexpr (kWeightFirst && Row::kUnaligned && N > 1) {
      if (p.weight == nullptr || packs == 0) return;
#pragma unroll
      for (int v = 0; v < kVectors; ++v)  // some packs twice: so all are asked for before the first has come
        weight[v] =
            load_unaligned<N>(p.weight + first + min(static_cast<int>(threadIdx.x) + v * threads, packs - 1) * N);
    } else if constexpr (kWeightFirst) {
      for_each(packs, [&](int v, int i) {
        if (p.weight != nullptr) weight[v] = load<N>(p.weight + first + i * N);
      });
    }
  }
  // The sum of squares of what is normalized.
  template <Keep sums = Row::kOut>
  __device__ float load_input(const Row& row, int packs) {
    Pack<X, N> x[kVectors] = {};
    decltype(row.load_residual(0)) residual[kVectors] = {};
    for_each(packs, [&](int v, int i) {
      x[v] = row.load_x(i);
      residual[v] = row.load_residual(i);
    });
    float sum = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      input[v] = row.add(x[v], residual[v]);
      sum += sum_of_squares(input[v]);
    }
    for_each(packs, [&](int v, int i) { row.template store_sum<sums>(i, input[v]); });
    return sum;
  }
  __device__ void load_input_again(const Row& row, int packs) {
    for_each(packs, [&](int v, int i) { input[v] = row.load_again(i); });
  }
  template <Finish finish>
  __device__ void store_output(const Row& row, int packs, float rstd) {
    constexpr int kBatch = kWeightFirst || kVectors < 2 ? kVectors : 2;
#pragma unroll
    for (int first = 0; first < kVectors; first += kBatch) {
      if constexpr (!kWeightFirst && finish != Finish::no_weight)
        for_each<kBatch>(packs - first * threads, [&](int v, int i) {
          weight[first + v] = row.template load_weight<finish>(i + first * threads);
        });
#pragma unroll
      for (int v = first; v < first + kBatch; ++v) {
        const auto y = row.template output<finish>(input[v], rstd, weight[v]);
        if (const int i = threadIdx.x + v * threads; i < packs) row.store_y(i, y);
      }
    }
  }
};

// An unaligned row's packs begin at its first 16-byte boundary. The elements before them and behind them, fewer than
// the threads of a row, are its ends, and each is a thread's own. Aligned rows have none.
template <int N, Traffic traffic, class P>
struct Ends {
  static constexpr bool kAny = traffic == Traffic::unaligned;
  using Row = detail::Row<1, traffic, P>;
  const P& p;
  const unsigned number;  // of the row
  int before = 0, count = 0;
  int64_t packs;
  Share<1, 1, traffic, P> share{0};

  __device__ Ends(const P& p, unsigned number, int64_t aligned_packs) : p(p), number(number), packs(aligned_packs) {
    if constexpr (kAny) {
      const auto address = reinterpret_cast<uintptr_t>(Row(p, number).x);
      before = static_cast<int>((16 - address % 16) % 16 / sizeof(*p.x));
      packs = (p.cols - before) / N;
      count = static_cast<int>(p.cols - packs * N);
    }
  }
  // The row's element of which the thread's own is the threadIdx.x-th.
  __device__ int64_t first() const { return static_cast<int>(threadIdx.x) < before ? 0 : packs * N; }

  __device__ void load_weight() {
    if constexpr (kAny) share.load_weight(p, first(), count);
  }
  __device__ float add_input(float sum) { return kAny ? sum + share.load_input(Row(p, number, first()), count) : sum; }
  template <Finish finish>
  __device__ void store_output(float rstd) {
    if constexpr (kAny) share.template store_output<finish>(Row(p, number, first()), count, rstd);
  }
};

// A row a warp, part of a warp, or a block: blockDim = (threads a row, rows a block); blockIdx.y is the head, as in
// every kernel.
template <int N, int kVectors, int kRowThreads, Traffic traffic, class X, class R, class W, class Y>
__global__ void __launch_bounds__(kRowThreads == 32 ? 256 : kRowThreads) row_in_registers(const Problem<X, R, W, Y> p) {
  using Share = detail::Share<N, kVectors, traffic, Problem<X, R, W, Y>>;
  constexpr bool kOneRow = traffic == Traffic::few && kRowThreads > 32;  // a block has one row, and all threads
  const int threads = kOneRow ? kRowThreads : blockDim.x;
  const int row_in_block = kOneRow ? 0 : threadIdx.y;
  const unsigned number = kOneRow ? blockIdx.x : blockIdx.x * blockDim.y + threadIdx.y;
  Ends<N, traffic, Problem<X, R, W, Y>> ends(p, number, p.packs);
  Share share(threads);
  share.load_weight(p, ends.before, static_cast<int>(ends.packs));
  ends.load_weight();
  if (p.dependent) wait_for_previous_kernel();

  // A thread without a row has nothing to do but to arrive.
  const bool has_row = kOneRow || number < p.rows;
  const int packs = has_row ? static_cast<int>(ends.packs) : 0;
  if (!has_row) ends.count = 0;
  const typename Share::Row row(p, number, ends.before);
  float sum = ends.add_input(share.load_input(row, packs));
  sum = row_sum<kRowThreads>(sum, threads, row_in_block);
  if (p.dependent) let_next_kernel_start();
  const float rstd = row.rstd(sum);
  with_finish(p, [&](auto finish) {
    share.template store_output<finish.value>(row, packs, rstd);
    ends.template store_output<finish.value>(rstd);
  });
}

// Long rows: blocks share one, kParts or as many as some_parts says, each `part_packs` of its packs, and tell each
// other their sums through an Exchange. What registers do not hold, unless they hold it all, is read twice.
template <int N, int kVectors, int kThreads, int kParts, bool kWhole, Traffic traffic, class Exchange, class X, class R,
          class W, class Y>
__global__ void __launch_bounds__(kThreads)
    row_in_parts(const Problem<X, R, W, Y> p, int64_t part_packs, int some_parts) {
  using Share = detail::Share<N, kVectors, traffic, Problem<X, R, W, Y>>;
  const unsigned parts = kParts > 0 ? kParts : some_parts;
  const unsigned number = gridDim.x == parts ? 0 : blockIdx.x / parts, part = blockIdx.x - number * parts;
  Ends<N, traffic, Problem<X, R, W, Y>> ends(p, number, p.cols / N);
  if (part > 0) ends.count = 0;
  const int64_t first = part * part_packs, packs = max(int64_t{0}, min(part_packs, ends.packs - first));
  constexpr int64_t kMost = static_cast<int64_t>(kVectors) * kThreads;  // that registers hold
  const int kept = static_cast<int>(kWhole ? packs : min(packs, kMost));
  const typename Share::Row row(p, number, ends.before + first * N);
  Exchange exchange(parts, part, p.workspace);
  Share share(kThreads);
  share.load_weight(p, ends.before + first * N, kept);
  ends.load_weight();
  if (p.dependent) wait_for_previous_kernel();

  exchange.begin();
  float sum = ends.add_input(share.load_input(row, kept));
  for (int64_t i = kMost; !kWhole && i < packs; i += kMost) {
    const typename Share::Row rest(p, number, ends.before + (first + i) * N);
    sum += Share(kThreads).template load_input<Keep::as_usual>(rest, static_cast<int>(min(packs - i, kMost)));
  }
  sum = exchange.template sum<kThreads>(row_sum<kThreads>(sum));
  if (p.dependent) let_next_kernel_start();
  const float rstd = row.rstd(sum);
  with_finish(p, [&](auto finish) {
    share.template store_output<finish.value>(row, kept, rstd);
    ends.template store_output<finish.value>(rstd);
    // From the end on, of which the caches have most.
    for (int64_t i = (packs - 1) / kMost * kMost; !kWhole && i >= kMost; i -= kMost) {
      const int count = static_cast<int>(min(packs - i, kMost));
      const int64_t element = ends.before + (first + i) * N;
      const typename Share::Row rest(p, number, element);
      share.load_weight(p, element, count);
      share.load_input_again(rest, count);
      share.template store_output<finish.value>(rest, count, rstd);
    }
  });
}

}  // namespace rms_norm::detail
