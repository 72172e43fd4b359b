// Query and key heads: the norm of each head, and then its rotary position embedding, in one pass and in place.
//
//   y = x / sqrt(mean(x²) + eps) · (weight_offset + weight)          for each head of head_dim elements
//   a, b = a · cos - b · sin, b · cos + a · sin                      for each pair (a, b) of elements of y
//
//   #include <rms_norm/rope.cuh>
//   rms_norm::Heads<__nv_bfloat16> heads = {qkv, tokens, q_heads, kv_heads, head_dim};
//   rms_norm::Rotation<float> rotation = {cos_sin, positions, max_positions};
//   cudaError_t error = rms_norm::qk_norm_rope(heads, q_weight, k_weight, rotation, {}, stream);
//
// The formula of the rotation is that of Su and others, "RoFormer: Enhanced Transformer with Rotary Position
// Embedding", 2021; the layout of cos_sin and the two orders of pairs are those of vLLM's fused_qk_norm_rope. The
// kernel is right for every length and alignment. It is not measured yet, and no policy chooses its shape.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "packs.cuh"
#include "sums.cuh"

namespace rms_norm {

// A row of packed heads for each token: query heads, then key heads; what follows, as the value heads, is not touched.
template <class T>
struct Heads {
  T* qkv;  // float, __half or __nv_bfloat16
  int64_t tokens, q_heads, kv_heads;
  int64_t head_dim;              // even
  int64_t stride = kContiguous;  // elements from one token to the next; kContiguous if there are no value heads
};

// Which elements of a head are a pair: halves, element i and rotary_dim / 2 + i, as in GPT-NeoX and Llama; or
// neighbours, elements 2i and 2i + 1, as in GPT-J.
enum class Pairs { halves, neighbours };

template <class C>
struct Rotation {
  // max_positions rows of rotary_dim elements: rotary_dim / 2 cosines, then as many sines. float, or the heads' type.
  const C* cos_sin;
  const int64_t* positions;  // of each token. The heads of a token become NaN if it is not from 0 to max_positions - 1
  int64_t max_positions;
  int64_t rotary_dim = 0;  // the first elements of a head, which are rotated; even; 0 for all of them
  Pairs pairs = Pairs::halves;
};

namespace detail {

constexpr int kRopeThreads = 128;
constexpr int64_t kRopeMostHeads = 65535;  // blocks of a grid in y

template <class T, class W, class C>
struct RopeProblem {
  T* qkv;
  const W *q_weight, *k_weight;  // nullptr for none
  const C* cos_sin;
  const int64_t* positions;
  int64_t stride, max_positions;
  int heads, q_heads, head_dim, rotary_dim;
  int lanes;  // that share a head: a power of two up to 32
  bool neighbours, round_first;
  float eps, weight_offset;
};

// Two packs of N elements of a head, of which element k of the one and of the other are pairs, or neighbours within
// them are. Unit u of the rotated elements uses the cosines and sines u · N to u · N + N - 1.
template <int N, class T, class W, class C>
struct RopeUnit {
  using P = RopeProblem<T, W, C>;
  bool rotated;
  int first, second;  // elements of the head
  int angle;          // elements of the cosines
  Pack<T, N> a = {}, b = {};

  __device__ RopeUnit(const P& p, int u) {
    const int rotated_units = p.rotary_dim / (2 * N);
    rotated = u < rotated_units;
    angle = u * N;
    const bool halves = rotated && !p.neighbours;
    first = halves ? u * N : 2 * u * N;
    second = first + (halves ? p.rotary_dim / 2 : N);
  }
  __device__ void load(const T* head) { a = detail::load<N>(head + first), b = detail::load<N>(head + second); }
  __device__ float squares() const { return sum_of_squares(a) + sum_of_squares(b); }

  // The normalized value, in float32. Rounded twice as in forward(), if the norm's rounding is llama's.
  __device__ static void normalize(const P& p, const Pack<T, N>& pack, const W* weight, float rstd, float (&value)[N]) {
    float factor[N] = {};
    unpack(pack, value);
    if (weight != nullptr) unpack(detail::load<N>(weight), factor);
    const float offset = weight != nullptr ? p.weight_offset : 1.0f;
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] *= rstd;
    if (p.round_first) unpack(round_to<T>(value), value);
#pragma unroll
    for (int k = 0; k < N; ++k) value[k] *= offset + factor[k];
    if (p.round_first) unpack(round_to<T>(value), value);
  }
  __device__ void store(const P& p, T* head, const W* weight, const C* cos_sin, float rstd) const {
    float values[2 * N], part[N];
    normalize(p, a, weight ? weight + first : nullptr, rstd, part);
#pragma unroll
    for (int k = 0; k < N; ++k) values[k] = part[k];
    normalize(p, b, weight ? weight + second : nullptr, rstd, part);
#pragma unroll
    for (int k = 0; k < N; ++k) values[N + k] = part[k];
    if (rotated) {
      float cosine[N], sine[N];
      unpack(detail::load<N>(cos_sin + angle), cosine);
      unpack(detail::load<N>(cos_sin + p.rotary_dim / 2 + angle), sine);
      if (p.neighbours)
        rotate<true>(values, cosine, sine);
      else
        rotate<false>(values, cosine, sine);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) part[k] = values[k];
    detail::store<false>(head + first, round_to<T>(part));
#pragma unroll
    for (int k = 0; k < N; ++k) part[k] = values[N + k];
    detail::store<false>(head + second, round_to<T>(part));
  }
  template <bool neighbours>
  __device__ static void rotate(float (&values)[2 * N], const float (&cosine)[N], const float (&sine)[N]) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      float& x = values[neighbours ? 2 * k : k];
      float& y = values[neighbours ? 2 * k + 1 : N + k];
      const float before = x;
      x = before * cosine[k] - y * sine[k];
      y = y * cosine[k] + before * sine[k];
    }
  }
};

// blockIdx.x is the token. p.lanes threads share a head, of which each takes every p.lanes-th unit. With kOnce, a head
// has at most as many units as lanes, so that they stay in registers; otherwise a head is read twice.
template <int N, bool kOnce, class T, class W, class C>
__global__ void __launch_bounds__(kRopeThreads) norm_and_rotate(const RopeProblem<T, W, C> p) {
  using Unit = RopeUnit<N, T, W, C>;
  wait_for_previous_kernel();
  let_next_kernel_start();
  const int head_number = static_cast<int>(blockIdx.y * (kRopeThreads / p.lanes) + threadIdx.x / p.lanes);
  const int lane = threadIdx.x % p.lanes, units = head_number < p.heads ? p.head_dim / (2 * N) : 0;
  const bool is_query = head_number < p.q_heads;
  T* const head = p.qkv + blockIdx.x * p.stride + int64_t{head_number} * p.head_dim;
  const W* const weight = is_query ? p.q_weight : p.k_weight;

  Unit kept(p, lane);
  float sum = 0.0f;
  if constexpr (kOnce) {
    if (lane < units) kept.load(head);
    sum = kept.squares();
  } else {
    for (int u = lane; u < units; u += p.lanes) {
      kept = Unit(p, u);
      kept.load(head);
      sum += kept.squares();
    }
  }
  sum = warp_sum(sum, p.lanes);  // all lanes take part, also those without a head

  const int64_t position = p.positions[blockIdx.x];
  const bool is_known = position >= 0 && position < p.max_positions;
  const C* const cos_sin = p.cos_sin + (is_known ? position : 0) * p.rotary_dim;
  float rstd = rsqrtf(sum / static_cast<float>(p.head_dim) + p.eps);
  if (!is_known) rstd = __int_as_float(0x7fffffff);  // NaN
  if constexpr (kOnce) {
    if (lane < units) kept.store(p, head, weight, cos_sin, rstd);
  } else {
    for (int u = lane; u < units; u += p.lanes) {
      kept = Unit(p, u);
      kept.load(head);
      kept.store(p, head, weight, cos_sin, rstd);
    }
  }
}

template <class T>
Layout layout_of(const Heads<T>& h) {
  return with_strides({h.stride}, h.tokens, (h.q_heads + h.kv_heads) * h.head_dim);
}
template <class C>
int64_t rotary_dim_of(const Rotation<C>& r, int64_t head_dim) {
  return r.rotary_dim == 0 ? head_dim : r.rotary_dim;
}

template <class T, class W, class C>
const char* rope_refusal(const Heads<T>& h, const W* q_weight, const W* k_weight, const Rotation<C>& r,
                         const Options& options) {
  static_assert(is_element<T> && is_element<W>, "heads and weights are float, __half or __nv_bfloat16");
  static_assert(std::is_same_v<C, float> || std::is_same_v<C, T>, "cos_sin is float, or has the heads' type");
  if (h.tokens < 0) return "tokens is negative";
  if (h.q_heads < 1 || h.kv_heads < 1) return "q_heads or kv_heads is less than 1";
  if (h.head_dim < 2 || h.head_dim % 2 != 0) return "head_dim is odd or less than 2";
  if (const char* wrong = refusal_of_shape(h.tokens, h.head_dim, 1, options)) return wrong;
  if (h.q_heads > kRopeMostHeads || h.kv_heads > kRopeMostHeads - h.q_heads) return "q_heads + kv_heads is above 65535";
  if (h.tokens > INT32_MAX || h.head_dim > INT32_MAX / 2) return "tokens or head_dim is above 2^31 - 1 or 2^30 - 1";
  const int64_t rotary_dim = rotary_dim_of(r, h.head_dim), positions = r.max_positions;
  if (rotary_dim < 2 || rotary_dim % 2 != 0 || rotary_dim > h.head_dim)
    return "rotary_dim is odd, less than 2, or greater than head_dim";
  if (positions < 1 || positions > INT64_MAX / 64 / rotary_dim)
    return "max_positions is less than 1, or too large for 64-bit addresses";
  if (h.tokens == 0) return nullptr;

  const int64_t width = (h.q_heads + h.kv_heads) * h.head_dim;
  const Matrix rows = {h.qkv, sizeof(T), layout_of(h), h.tokens, width};
  if (const char* wrong = refusal_of_layout(rows, 1)) return wrong;
  if (!rows_are_apart(rows)) return "stride is less than the heads of a token take";
  if (h.qkv == nullptr) return "qkv is nullptr";
  if (r.cos_sin == nullptr) return "cos_sin is nullptr";
  if (r.positions == nullptr) return "positions is nullptr";
  const auto is_misaligned = [](const auto* data) { return reinterpret_cast<uintptr_t>(data) % sizeof(*data) != 0; };
  if (is_misaligned(h.qkv)) return "qkv is not aligned to its element type";
  if (is_misaligned(q_weight)) return "q_weight is not aligned to its element type";
  if (is_misaligned(k_weight)) return "k_weight is not aligned to its element type";
  if (is_misaligned(r.cos_sin)) return "cos_sin is not aligned to its element type";
  if (is_misaligned(r.positions)) return "positions is not aligned to its element type";
  const auto meets = [&](const auto* data, int64_t count) {
    return Region(data, count * static_cast<int64_t>(sizeof(*data))).overlaps(rows.region());
  };
  if (meets(q_weight, h.head_dim)) return "qkv overlaps q_weight";
  if (meets(k_weight, h.head_dim)) return "qkv overlaps k_weight";
  if (meets(r.cos_sin, positions * rotary_dim)) return "qkv overlaps cos_sin";
  if (meets(r.positions, h.tokens)) return "qkv overlaps positions";
  return nullptr;
}

template <class T, class W, class C>
cudaError_t run_rope(const Heads<T>& h, const W* q_weight, const W* k_weight, const Rotation<C>& r,
                     const Options& options, cudaStream_t stream) {
  if (rope_refusal(h, q_weight, k_weight, r, options) != nullptr) return cudaErrorInvalidValue;
  if (h.tokens == 0) return cudaSuccess;
  constexpr int kPack = 16 / sizeof(T);
  RopeProblem<T, W, C> p = {};
  p.qkv = h.qkv, p.q_weight = q_weight, p.k_weight = k_weight, p.cos_sin = r.cos_sin, p.positions = r.positions;
  p.stride = layout_of(h).stride, p.max_positions = r.max_positions;
  p.heads = static_cast<int>(h.q_heads + h.kv_heads), p.q_heads = static_cast<int>(h.q_heads);
  p.head_dim = static_cast<int>(h.head_dim), p.rotary_dim = static_cast<int>(rotary_dim_of(r, h.head_dim));
  p.neighbours = r.pairs == Pairs::neighbours, p.round_first = options.rounding == Rounding::llama;
  p.eps = options.eps, p.weight_offset = options.weight_offset;

  Grid grid = {dim3(static_cast<unsigned>(h.tokens)), dim3(kRopeThreads)};
  if (options.dependent_launch) {
    int device = 0, architecture = 0;
    if (const cudaError_t error = cudaGetDevice(&device)) return error;
    if (const cudaError_t error = query_code<CUDA_BITS_ARCHITECTURES>(device, architecture)) return error;
    grid.dependent = architecture >= 90;
  }
  const auto start = [&](auto kernel, int units) {
    for (p.lanes = 1; p.lanes < units && p.lanes < 32;) p.lanes *= 2;
    const int heads_of_block = kRopeThreads / p.lanes;
    grid.blocks.y = static_cast<unsigned>((p.heads + heads_of_block - 1) / heads_of_block);
    return launch(stream, grid, kernel, p);
  };
  // In packs of 16 bytes of the heads, if every head, the weights, and the cosines and sines allow for that; but that
  // adds up in another order, which would let a head's bits depend on where qkv lies.
  const int units = p.head_dim / (2 * kPack);
  const auto is_aligned = [](const auto* data) {
    return reinterpret_cast<uintptr_t>(data) % std::min<size_t>(16, kPack * sizeof(*data)) == 0;
  };
  const bool in_packs = !options.batch_invariant && p.head_dim % (2 * kPack) == 0 && p.rotary_dim % (2 * kPack) == 0 &&
                        p.stride % kPack == 0 && units <= 32 && is_aligned(h.qkv) && is_aligned(q_weight) &&
                        is_aligned(k_weight) && is_aligned(r.cos_sin);
  if (in_packs) return start(norm_and_rotate<kPack, true, T, W, C>, units);
  return start(norm_and_rotate<1, false, T, W, C>, p.head_dim / 2);
}

// The element type of two weights, of which nullptr has none.
template <class T, class Q, class K>
using RopeWeight = std::conditional_t<!std::is_null_pointer_v<Q>, Element<Q>,
                                      std::conditional_t<!std::is_null_pointer_v<K>, Element<K>, T>>;

}  // namespace detail

// Normalizes and rotates the heads in place. Sums and the rotation are computed in float32; the result is rounded once,
// or, with llama's rounding, also the normalized value and its product with the weight. Each weight is a pointer to
// head_dim elements of float, __half or __nv_bfloat16, or nullptr for none; both have the same type.
//
// Of the options, eps, weight_offset, rounding, dependent_launch and batch_invariant count: a head's bits never depend
// on the other heads, and with batch_invariant not on the alignment of qkv either. As a dependent launch, the kernel
// waits for the kernel before it before it reads anything. Returns what the launch returns; or cudaErrorInvalidValue,
// with nothing launched, for what explain_qk_norm_rope() then names. It allocates nothing, and may be captured into a
// graph.
template <class T, class Q, class K, class C>
cudaError_t qk_norm_rope(const Heads<T>& heads, Q q_weight, K k_weight, const Rotation<C>& rotation,
                         const Options& options = {}, cudaStream_t stream = nullptr) {
  using W = detail::RopeWeight<T, Q, K>;
  return detail::run_rope<T, W, C>(heads, q_weight, k_weight, rotation, options, stream);
}

// Why a call with these arguments is refused: one sentence. nullptr if it is not refused.
template <class T, class Q, class K, class C>
const char* explain_qk_norm_rope(const Heads<T>& heads, Q q_weight, K k_weight, const Rotation<C>& rotation,
                                 const Options& options = {}) {
  using W = detail::RopeWeight<T, Q, K>;
  return detail::rope_refusal<T, W, C>(heads, q_weight, k_weight, rotation, options);
}

}  // namespace rms_norm
