// The kernel behind quantize.cuh: a row is normalized and becomes 8-bit numbers without a way through memory.
//
// The largest output of a row is needed before the first output can be stored. Where results are rounded once, it is
// known with the sum of squares: an output is x · weight · rstd, and rstd is the same positive number in the whole row,
// so the largest |x · weight| becomes the largest output. Both go through one reduction. Where the normalized value is
// rounded before the weight, this does not hold, and a second reduction follows the first one.
#pragma once

#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "kernels.cuh"
#include "packs.cuh"
#include "sums.cuh"

namespace rms_norm::detail {

// --- 8-bit numbers ---------------------------------------------------------------------------------------------------

template <class Q>
constexpr bool is_code =
    std::is_same_v<Q, __nv_fp8_e4m3> || std::is_same_v<Q, __nv_fp8_e5m2> || std::is_same_v<Q, int8_t>;

// The largest number of a format, which a dynamic scale gives to the largest output, and the smallest dynamic scale.
// Both are vLLM's (e5m2, which vLLM does not have, by the rule of e4m3).
template <class Q>
constexpr float most_of = std::is_same_v<Q, int8_t>          ? 127.0f
                          : std::is_same_v<Q, __nv_fp8_e4m3> ? 448.0f
                                                             : 57344.0f;
template <class Q>
constexpr float least_scale = std::is_same_v<Q, int8_t> ? FLT_EPSILON : 1.0f / (most_of<Q> * 512.0f);

// Four numbers that are rounded to nearest even and brought between -128 and 127. NaN is 0.
__device__ inline unsigned round_to_bytes(float a, float b, float c, float d) {
#ifdef __SIMT__
  unsigned word = 0;
  for (const float value : {d, c, b, a}) {
    const float clamped = value == value ? fminf(fmaxf(value, -128), 127) : 0;
    word = word << 8 | (static_cast<unsigned>(__float2int_rn(clamped)) & 255);
  }
  return word;
#else
  unsigned word;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(word) : "r"(__float2int_rn(d)), "r"(__float2int_rn(c)));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %0;" : "+r"(word) : "r"(__float2int_rn(b)), "r"(__float2int_rn(a)));
  return word;
#endif
}

// Rounded to nearest even; what is too large becomes the largest number of its sign. NaN stays NaN, and is 0 as int8_t.
template <class Q, int N>
__device__ Pack<Q, N> round_to_codes(const float (&value)[N]) {
  static_assert(N % 4 == 0, "four in a word");
  Pack<Q, N> pack;
#pragma unroll
  for (int i = 0; i < N; i += 4) {
    if constexpr (std::is_same_v<Q, int8_t>) {
      pack.word[i / 4] = round_to_bytes(value[i], value[i + 1], value[i + 2], value[i + 3]);
    } else {
      constexpr auto kind = std::is_same_v<Q, __nv_fp8_e4m3> ? __NV_E4M3 : __NV_E5M2;
      const unsigned low = __nv_cvt_float2_to_fp8x2({value[i], value[i + 1]}, __NV_SATFINITE, kind);
      const unsigned high = __nv_cvt_float2_to_fp8x2({value[i + 2], value[i + 3]}, __NV_SATFINITE, kind);
      pack.word[i / 4] = low | high << 16;
    }
  }
  return pack;
}

// y / scale, rounded once, as a division: the product with the rounded inverse, less what it is too large by. A
// quotient that is far too large is left as it is: with an infinite one, nothing could be computed. The signs keep that
// of a zero.
template <class Q>
__device__ float quotient(float y, float scale, float inverse) {
  const float near = y * inverse;
  return fabsf(near) < 2 * most_of<Q> ? fmaf(fmaf(near, scale, -y), -inverse, near) : near;
}

// most / most_of<Q>, and 1 / scale: rounded once, as a division is, but without its branches for what is too large or
// too small. A scale that a kernel finds is neither, but it may be infinite.
template <class Q>
__device__ float over_most(float most) {
  constexpr float kInverse = 1.0f / most_of<Q>;
  const float near = most * kInverse;
  return near < INFINITY ? fmaf(fmaf(-near, most_of<Q>, most), kInverse, near) : near;
}
__device__ inline float inverse_of_scale(float scale) {
#ifdef __SIMT__
  return 1.0f / scale;
#else
  float near;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(near) : "f"(scale));
  return scale < INFINITY ? fmaf(fmaf(-near, scale, 1.0f), near, near) : near;
#endif
}

// --- A problem and its reductions ------------------------------------------------------------------------------------

// What shares a scale: the whole tensor, whose scale is given; a row; or some columns of one.
enum class Scaling { tensor, row, block };

template <class Q>
struct QuantizeOutput {
  Q* q = nullptr;
  const float* scale = nullptr;
  float* scales = nullptr;
  const float* upper_bound = nullptr;        // or nullptr
  int64_t scales_row = 0, scales_block = 0;  // from one scale to the next, along the rows and along the columns
  int block_packs = 0;                       // that share a scale: a power of two
  int block_log = 0;                         // its logarithm
};
// What every kernel reads comes first, as in Problem: it reads the row before the rest.
template <class X, class R, class W, class Q>
struct QuantizeProblem : Problem<X, R, W, X>, QuantizeOutput<Q> {  // y may be nullptr
  using Norm = Problem<X, R, W, X>;
  Steps q_steps = {};
  int64_t first = 0, end = 0;  // the rows of this launch
};

// The largest number of so many neighbouring lanes, which are a power of two and at most kMostLanes.
template <int kMostLanes = 32>
__device__ float warp_max(float value, int lanes) {
#pragma unroll
  for (int mask = kMostLanes / 2; mask > 0; mask /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, mask < lanes ? mask : 0));  // no branch
  return value;
}
// Of a whole warp's numbers that are not negative: their bits have their order.
__device__ inline float warp_max(float value) {
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
  return __uint_as_float(__reduce_max_sync(0xffffffffu, __float_as_uint(value)));
#else
  return warp_max(value, 32);
#endif
}
// Of count numbers each, the first lane of `lanes` gets the largest first one of all, and so on, `lanes` / count lanes
// the same. That takes fewer shuffles than warp_max() of each number.
template <int kMostLanes, int count>
__device__ float dealt_max(const float (&value)[count], int lanes) {
  if constexpr (count == 1) {
    return warp_max<kMostLanes>(value[0], lanes);
  } else {
    constexpr int kHalf = count / 2;
    const bool upper = threadIdx.x & (lanes / 2);
    float half[kHalf];
#pragma unroll
    for (int k = 0; k < kHalf; ++k) {
      const float other = __shfl_xor_sync(0xffffffffu, upper ? value[k] : value[k + kHalf], lanes / 2);
      half[k] = fmaxf(upper ? value[k + kHalf] : value[k], other);
    }
    return dealt_max<kMostLanes / 2>(half, lanes / 2);
  }
}
// The sum of the first numbers of a warp in its lower half, and that of the second ones in the upper half, both in the
// order of warp_sum().
__device__ inline float warp_sum(const float (&value)[2]) {
  const bool upper = threadIdx.x & 16;
  const float other = __shfl_xor_sync(0xffffffffu, upper ? value[0] : value[1], 16);
  return warp_sum((upper ? value[1] : value[0]) + other, 16);
}

// Of eight numbers in shared memory, which each thread reads four at a time.
template <class Operation>
__device__ float of_eight(const float* numbers, Operation operation) {
  float part[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) part[i] = numbers[i];
#pragma unroll
  for (int step = 4; step > 0; step /= 2)
#pragma unroll
    for (int i = 0; i < step; ++i) part[i] = operation(part[i], part[i + step]);
  return part[0];
}
struct SumAndMost {
  float sum, most;
};
// Where the warps of a row meet. What no warp writes is cleared while the input is on its way.
struct WarpsOfRow {
  alignas(16) float sum[32], most[32];
  __device__ static WarpsOfRow& memory() {
    __shared__ WarpsOfRow memory;
    return memory;
  }
  template <int kTeam, bool kMost, int kSums>
  __device__ static void clear() {
    const int warps = blockDim.x / 32, i = static_cast<int>(threadIdx.x);
    if (kTeam == 32 || i >= 8) return;
    if (i >= kSums * warps) memory().sum[i] = 0.0f;
    if (kMost && i >= warps) memory().most[i] = 0.0f;
  }
};
// Over the threads of a row: up to 32, which are a power of two, or all of a block. With two sums each, a thread stands
// for two, of which the second one is blockDim.x threads further, and their sum has the order that it has without.
template <int kTeam, bool kMost, int kSums>
__device__ SumAndMost over_row(const float (&sums)[kSums], float most, int threads) {
  if constexpr (kTeam == 32) {
    static_assert(kSums == 1, "for rows of a block");
    return {warp_sum(sums[0], threads), kMost ? warp_max(most, threads) : 0.0f};
  } else {
    auto& [sum_of_warps, most_of_warps] = WarpsOfRow::memory();
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, parts = kSums * warps;
    float sum;
    if constexpr (kSums == 1)
      sum = warp_sum(sums[0]);
    else
      sum = warp_sum(sums);
    if (kMost) most = warp_max(most);
    if (lane % (32 / kSums) == 0) sum_of_warps[warp + (lane == 0 ? 0 : warps)] = sum;
    if (kMost && lane == 0) most_of_warps[warp] = most;
    __syncthreads();
    if (kTeam * kSums <= 256 || parts <= 8)
      return {of_eight(sum_of_warps, [](float a, float b) { return a + b; }),
              kMost ? of_eight(most_of_warps, [](float a, float b) { return fmaxf(a, b); }) : 0.0f};
    return {warp_sum(lane < parts ? sum_of_warps[lane] : 0.0f),
            kMost ? warp_max(lane < warps ? most_of_warps[lane] : 0.0f) : 0.0f};
  }
}
template <int kTeam>
__device__ float most_over_row(float mine, int threads) {
  if constexpr (kTeam == 32) {
    return warp_max(mine, threads);
  } else {
    __shared__ float of_warps[kTeam / 32];
    const unsigned lane = threadIdx.x % 32, warps = blockDim.x / 32;
    mine = warp_max(mine);
    if (lane == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_max(lane < warps ? of_warps[lane] : 0.0f);
  }
}

// --- The kernel ------------------------------------------------------------------------------------------------------

// How the threads of a row share it: each has kVectors packs; or some have fewer; or the row is longer than what they
// keep in registers, and is read again.
enum class Fit { full, whole, longer };

// What a thread has of a row at one time: every threads-th pack from `first` on, kVectors of them. The last pack of a
// row may have fewer elements, and zeros in place of the others.
template <int N, int kVectors, Access access, Fit fit, class P>
struct QuantizedShare {
  static constexpr bool kAligned = access != Access::unaligned, kFull = fit == Fit::full, kWhole = fit != Fit::longer;
  using Index = std::conditional_t<kWhole, int, int64_t>;
  // What a short kernel stores is read next, and left to L2 as it is.
  static constexpr bool kHints = access != Access::contiguous || kVectors > 2;
  using Row = detail::Row<N, kHints ? Access::strided : Access::contiguous, typename P::Norm>;
  using X = std::remove_const_t<std::remove_pointer_t<decltype(P::x)>>;
  using W = std::remove_const_t<std::remove_pointer_t<decltype(P::weight)>>;
  const P& p;
  const Row& row;
  Index packs;  // of the row, if it is there
  Pack<W, N> weight[kVectors] = {};
  Pack<X, N> x[kVectors];
  typename Row::Residual residual[kVectors];
  typename Row::Kept input[kVectors];
  float value[kVectors][N];

  __device__ QuantizedShare(const P& problem, const Row& of, Index count) : p(problem), row(of), packs(count) {}

  template <class Visit>
  __device__ void for_each(Index first, Visit visit) const {
#pragma unroll
    for (int v = 0; v < kVectors; ++v)
      if (const Index i = first + static_cast<int>(threadIdx.x + v * blockDim.x); kFull || i < packs) visit(v, i);
  }
  __device__ int64_t left(Index i) const { return p.cols - int64_t{i} * N; }  // elements from pack i on
  __device__ void load_weight(Index first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) weight[v] = {};
    const bool there = p.weight != nullptr;
    if (!kAligned && !there) return;
    for_each(first, [&](int v, Index i) {
      if constexpr (!kAligned)
        weight[v] = load_some<N>(p.weight + int64_t{i} * N, left(i));
      else if (there)  // without a branch around all: in a short kernel, a load that starts late is felt
        weight[v] = load<N>(p.weight + int64_t{i} * N);
    });
    __syncwarp();  // or nvcc 13.0 moves the loads behind those of the row
  }
  __device__ void load_input(Index first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) x[v] = {}, residual[v] = {};
    for_each(first, [&](int v, Index i) {
      if constexpr (kAligned) {
        x[v] = row.load_x(i);
        residual[v] = row.load_residual(i);
      } else {
        x[v] = load_some<N, false>(row.x + int64_t{i} * N, left(i));
        if constexpr (P::kAdds) residual[v] = load_some<N, false>(row.residual + int64_t{i} * N, left(i));
      }
    });
  }
  // Adds the squares of what load_input() loaded to the sums: two, if the thread stands for two.
  template <int kSums>
  __device__ void add_input(Index first, float (&total)[kSums]) {
    float sums[kVectors];
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      input[v] = row.add(x[v], residual[v]);
      sums[v] = sum_of_squares(input[v]);
    }
    for_each(first, [&](int v, Index i) {
      if constexpr (!P::kAdds)
        static_cast<void>(i);
      else if constexpr (kAligned)
        row.template store_sum<kHints>(i, input[v]);
      else
        store_some(row.residual_out + int64_t{i} * N, input[v], left(i));
    });
    constexpr int kOfEach = kVectors / kSums;
#pragma unroll
    for (int k = 0; k < kSums; ++k) {
      float mine[kOfEach];
#pragma unroll
      for (int v = 0; v < kOfEach; ++v) mine[v] = sums[k + v * kSums];
      total[k] += sum_in_pairs(mine);
    }
  }
  __device__ void load_again(Index first) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) input[v] = {};
    for_each(first, [&](int v, Index i) {
      if constexpr (kAligned)
        input[v] = row.load_again(i);
      else if constexpr (P::kAdds)
        input[v] = load_some<N, false>(row.residual_out + int64_t{i} * N, left(i));
      else
        input[v] = load_some<N, false>(row.x + int64_t{i} * N, left(i));
    });
  }

  // The outputs, if they are rounded before the weight and after it; otherwise the products that become outputs when
  // they are multiplied by unit(rstd), and that do not need rstd. They take no more registers than what they are made
  // of.
  template <Rounded rounded>
  __device__ void compute(float rstd) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (rounded == Rounded::twice) {
        unpack(row.template output<rounded>(input[v], rstd, weight[v]), value[v]);
      } else {
        const auto products = Row::products(input[v], weight[v], p.weight_offset * Row::Products::kScale);
#pragma unroll
        for (int k = 0; k < N; ++k) value[v][k] = products.of[k];
      }
    }
  }
  template <Rounded rounded>
  __device__ static float unit(float rstd) {
    return rounded == Rounded::twice ? 1.0f : rstd / Row::Products::kScale;
  }
  __device__ float most(int v) const {  // fmaxf() passes over NaN
    float result = 0.0f;
#pragma unroll
    for (int k = 0; k < N; ++k) result = fmaxf(result, fabsf(value[v][k]));
    return result;
  }
  __device__ float most() const {
    float result = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) result = fmaxf(result, most(v));
    return result;
  }
};

// Where most of a GPU's time goes to instructions, fewer threads with twice the packs share what a row costs each warp.
template <int kVectors>
constexpr int sums_of = kVectors == 4 ? 2 : 1;

// So many blocks let the next kernel start as soon as they have; fewer are faster if it starts when the sum is known.
constexpr unsigned kManyBlocks = 32;

// A row per block, or several, each by a part of a warp: blockDim = (threads per row, rows per block). The rows of
// contiguous problems follow each other, which saves the instructions by which a row is found; and y is stored only
// where a residual is added and scales are those of blocks. A constant argument that is not in the cache is waited for,
// so a short kernel reads those of the scales when the row is on its way.
template <int N, int kVectors, int kTeam, Access access, Fit fit, Scaling scaling, Rounded rounded, class X, class R,
          class W, class Q>
__global__ void __launch_bounds__(most_threads<kTeam>, kMostThreads / most_threads<kTeam>)
    quantized_rows(const QuantizeProblem<X, R, W, Q> p) {
  using P = QuantizeProblem<X, R, W, Q>;
  using Share = QuantizedShare<N, kVectors, access, fit, P>;
  using Row = typename Share::Row;
  const int threads = static_cast<int>(blockDim.x);
  constexpr bool kContiguous = access == Access::contiguous, kAligned = Share::kAligned, kRowOfBlock = kTeam > 32;
  constexpr bool kFull = Share::kFull, kWhole = Share::kWhole, kOnce = rounded == Rounded::once;
  constexpr bool kStoresNorm = !kContiguous || (P::kAdds && scaling == Scaling::block);
  Row row(p, 0);
  Q* q = p.q;
  std::conditional_t<kContiguous, unsigned, int64_t> number, end;
  if constexpr (kContiguous) {
    number = kRowOfBlock ? blockIdx.x : blockIdx.x * blockDim.y + threadIdx.y, end = static_cast<unsigned>(p.rows);
    const int64_t begin = static_cast<int64_t>(uint64_t{number} * static_cast<unsigned>(p.packs * N));
    row.x = p.x + begin, row.y = p.y + begin, q += begin;
    if constexpr (P::kAdds) row.residual = p.residual + begin, row.residual_out = p.residual_out + begin;
  } else {
    number = p.first + static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y, end = p.end;
    const RowPlace place = place_of(number, p.heads);
    const auto begin = [&](const Steps& steps) { return place.token * steps.row + place.head * steps.head; };
    row.x = p.x + begin(p.x_steps), row.y = p.y + begin(p.y_steps), q += begin(p.q_steps);
    if constexpr (P::kAdds) {
      row.residual = p.residual + begin(p.residual_steps);
      row.residual_out = p.residual_out + begin(p.residual_out_steps);
    }
  }

  using Index = typename Share::Index;
  const Index row_packs = kWhole ? p.packs : static_cast<Index>((p.cols + N - 1) / N), step = kVectors * threads;
  Share share(p, row, (kContiguous && kRowOfBlock) || number < end ? row_packs : 0);
  share.load_weight(0);
  if (p.dependent) {
    wait_for_previous_kernel();
    if (gridDim.x >= kManyBlocks) let_next_kernel_start();
  }
  float fixed = 0.0f, bound = INFINITY;
  const auto scale_of = [&](float most) {
    return fmaxf(over_most<Q>(fminf(fmaxf(most, 0.0f), bound)), least_scale<Q>);  // NaN is 0
  };

  constexpr bool kMost = kOnce && scaling == Scaling::row;
  float sums[sums_of<kVectors>] = {}, most = 0.0f;
  // The first packs last, so that they are in registers then.
  for (Index i = kWhole ? 0 : (row_packs - 1) / step * step; i >= 0; i -= step) {
    if constexpr (!kWhole) share.load_weight(i);
    share.load_input(i);
    if (i == 0) {
      __syncwarp();  // or nvcc 13.0 moves these loads before those of the row
      if (scaling == Scaling::tensor) fixed = *p.scale;
      if (scaling != Scaling::tensor && p.upper_bound) bound = *p.upper_bound;
      WarpsOfRow::clear<kTeam, kMost, sums_of<kVectors>>();
    }
    share.add_input(i, sums);
    if constexpr (kOnce) share.template compute<rounded>(0.0f);
    if constexpr (kMost) most = fmaxf(most, share.most());
    if constexpr (kWhole) break;
  }
  // Of the columns that share a scale, each lane finds the largest number of one of its packs.
  [[maybe_unused]] const int lanes = p.block_packs, lanes_of_each = lanes / kVectors;
  [[maybe_unused]] const int lane = static_cast<int>(threadIdx.x) & (lanes - 1);
  [[maybe_unused]] constexpr int kLogOfVectors = kVectors / 2;
  [[maybe_unused]] float most_of_block = 0.0f;
  const auto find_most_of_block = [&] {
    if constexpr (scaling == Scaling::block) {
      float of_packs[kVectors];
#pragma unroll
      for (int v = 0; v < kVectors; ++v) of_packs[v] = share.most(v);
      most_of_block = dealt_max<128 / N>(of_packs, lanes);
    }
  };
  [[maybe_unused]] const int dealt = scaling == Scaling::block ? lane >> (p.block_log - kLogOfVectors) : 0;  // its pack
  [[maybe_unused]] const Index dealt_pack = static_cast<int>(threadIdx.x) - lane + dealt * threads;
  const auto stores_scale = [&](Index i) { return lane == dealt * lanes_of_each && (kFull || i < share.packs); };
  const auto place_of_scale = [&](Index i) {
    return p.scales + number * p.scales_row + (i >> p.block_log) * p.scales_block;
  };
  // Where there is a residual, the place is found while that is on its way. Elsewhere, registers are worth more.
  constexpr bool kPlaceFirst = P::kAdds && kWhole && scaling == Scaling::block;
  [[maybe_unused]] float* const place = kPlaceFirst && stores_scale(dealt_pack) ? place_of_scale(dealt_pack) : nullptr;
  if constexpr (kOnce) find_most_of_block();
  [[maybe_unused]] const float early = inverse_of_scale(fixed);
  const SumAndMost row_wide = over_row<kTeam, kMost>(sums, most, threads);
  if (p.dependent) let_next_kernel_start();
  const float rstd = row.rstd(row_wide.sum), unit = Share::template unit<rounded>(rstd);
  const auto load_again = [&](Index i) {
    share.load_weight(i);
    share.load_again(i);
    share.template compute<rounded>(rstd);
    find_most_of_block();
  };
  most = row_wide.most;
  if constexpr (!kOnce) {
    share.template compute<rounded>(rstd);
    if constexpr (scaling == Scaling::row) {
      most = share.most();
      for (Index i = step; !kWhole && i < row_packs; i += step) {
        load_again(i);
        most = fmaxf(most, share.most());
      }
      most = most_over_row<kTeam>(most, threads);
      if constexpr (!kWhole) load_again(0);
    }
    find_most_of_block();
  }
  float scale[kVectors], inverse[kVectors];
  const auto use_scale = [&](float of_all) {
    float inverse_of_all = inverse_of_scale(of_all);
    // A given scale may be anything. The product with the usual ones is known by now.
    if constexpr (scaling == Scaling::tensor)
      inverse_of_all = fabsf(of_all) > 0x1p-120f && fabsf(of_all) < 0x1p120f ? early : 1.0f / of_all;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) scale[v] = of_all, inverse[v] = inverse_of_all;
  };
  if constexpr (scaling != Scaling::block) use_scale(scaling == Scaling::tensor ? fixed : scale_of(most * unit));
  if (scaling == Scaling::row && threadIdx.x == 0 && share.packs > 0) p.scales[number * p.scales_row] = scale[0];

  const auto finish = [&](auto stores_norm) {
    for (Index first = 0; first < (kWhole ? 1 : row_packs); first += step) {
      if (!kWhole && first > 0) load_again(first);
      if (stores_norm.value && (kContiguous || p.y != nullptr))
        share.for_each(first, [&](int v, Index i) {
          float value[N];
#pragma unroll
          for (int k = 0; k < N; ++k) value[k] = share.value[v][k] * unit;
          if constexpr (kAligned)
            row.store_y(i, round_to<X>(value));
          else
            store_some(row.y + int64_t{i} * N, round_to<X>(value), share.left(i));
        });
      if constexpr (scaling == Scaling::block) {
        const float own = scale_of(most_of_block * unit), own_inverse = inverse_of_scale(own);
        if constexpr (kPlaceFirst) {
          if (place != nullptr) *place = own;
        } else if (const Index i = first + dealt_pack; stores_scale(i)) {
          *place_of_scale(i) = own;
        }
#pragma unroll
        for (int v = 0; v < kVectors; ++v) {
          scale[v] = __shfl_sync(0xffffffffu, own, v * lanes_of_each, lanes);
          inverse[v] = __shfl_sync(0xffffffffu, own_inverse, v * lanes_of_each, lanes);
        }
      }
#pragma unroll
      for (int v = 0; v < kVectors; ++v) {
        const Index i = first + static_cast<int>(threadIdx.x) + v * threads;
        if (!kFull && i >= share.packs) continue;
        float value[N];
        constexpr bool kDivides = !kOnce && scaling != Scaling::tensor && !std::is_same_v<Q, int8_t>;
        const float divisor = scale[v] < INFINITY ? scale[v] : 0.0f, factor = unit * inverse[v];
#pragma unroll
        for (int k = 0; k < N; ++k)
          value[k] = kDivides ? quotient<Q>(share.value[v][k], divisor, inverse[v]) : share.value[v][k] * factor;
        if constexpr (kAligned)
          store<Share::kHints>(q + int64_t{i} * N, round_to_codes<Q>(value), p.writes);
        else
          store_some(q + int64_t{i} * N, round_to_codes<Q>(value), share.left(i));
      }
      if constexpr (kWhole) break;
    }
  };
  // In a short kernel, the norm's instructions fill the time in which a scale is found, so they have no branch of their
  // own.
  if constexpr (kContiguous && kStoresNorm)
    if (p.y == nullptr) return finish(std::false_type());
  finish(std::bool_constant<kStoresNorm>());
}

}  // namespace rms_norm::detail
