// The arguments of a call: their types, the rules that they must keep, and how they become a Problem for a kernel.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>

#include "../memory_overlap.cuh"
#include "kernels.cuh"

namespace rms_norm {

// Where the weight comes in. gemma: all is computed in float32 and rounded once, at the end. llama: the normalized
// value is rounded to y's type, multiplied by the weight, and rounded again. Without a weight the two are the same.
enum class Rounding { gemma, llama };

// What the L2 cache is asked to do with the tensors (the weight is always left to it). Results do not depend on it.
//   tuned         what the policy measured as fastest for a problem of this size, alone on the GPU
//   normal        no wishes: what is read and written competes with everything else in the cache
//   evict_first   what is read and written leaves the cache first, and so displaces little of what others keep there
enum class Cache { tuned, normal, evict_first };

struct Options {
  float eps = 1e-6f;           // added to the mean of squares, in float32; finite, >= 0 (rms_norm.cuh says what 0 does)
  float weight_offset = 0.0f;  // 1 for Gemma's 1 + weight; added in float32; has no effect without a weight
  Rounding rounding = Rounding::gemma;

  // Programmatic dependent launch: the kernel starts while the kernel before it on the stream ends. It reads the weight
  // at once, and waits for that kernel before it reads or writes anything else; so that kernel must not write the
  // weight. (It may prefetch x and residual into the L2 cache at once, which gives no thread a value.) Kernels before
  // that one have ended, if it waits before it lets the next kernel start, as all kernels of this header and of q4_gemm
  // do. One of your own that is a dependent launch, too, must call cudaGridDependencySynchronize() before
  // cudaTriggerProgrammaticLaunchCompletion(). It needs compute capability 9.0; elsewhere the launch is a plain one.
  bool dependent_launch = false;

  // Lets many blocks share long rows. kWorkspaceBytes of device memory, aligned to 16 bytes, that init_workspace()
  // has prepared. Calls that may run at the same time need a workspace each; so two executables of one graph must not
  // run at the same time. With nullptr, long rows take longer.
  void* workspace = nullptr;

  Cache cache = Cache::tuned;

  // A row's bits depend on its numbers, their types, cols and the options above alone: not on the rows beside it, nor
  // on where tensors lie. Otherwise the number of rows may choose another kernel, which adds up in another order. It
  // holds for one policy on GPUs of one kind. README.md says what it costs.
  bool batch_invariant = false;
};

constexpr size_t kWorkspaceBytes = 80 * 160 * sizeof(uint64_t);  // see MemoryExchange in sums.cuh

// The stride of rows that follow each other without gaps.
constexpr int64_t kContiguous = INT64_MIN;

// Where rows begin, in elements; rms_norm.cuh explains it.
struct Layout {
  int64_t stride = kContiguous;
  int64_t heads = 1;
  int64_t head_stride = 0;
};

template <class T>
struct Tensor {
  T* data;
  Layout layout = {};
};
template <class T>
Tensor(T*) -> Tensor<T>;
template <class T>
Tensor(T*, Layout) -> Tensor<T>;

// A tensor and, for each of its rows, rstd = 1 / sqrt(mean(x²) + eps): as many floats as the call has rows, without
// gaps and in the order of the rows. forward() and fused_add_rms_norm() store it if y is given so, and backward() reads
// it if x is given so: WithRstd{y, rstd}.
template <class T, class F = float>
struct WithRstd {
  T tensor;
  F* rstd;
};
template <class T, class F>
WithRstd(T, F*) -> WithRstd<T, F>;

// What a sentence about a call says for its tensors. A binding may have other names for them.
struct Names {
  const char *x = "x", *residual = "residual", *residual_out = "residual_out", *weight = "weight", *y = "y", *q = "q";
};

namespace detail {

constexpr int kMostHeads = 65535;  // of a grid

// --- A call, from any mix of pointers and tensors --------------------------------------------------------------------

// The rstd of rows, where a call has it.
template <class F>
struct Rstd {
  bool is_given = false;
  F* data = nullptr;

  const char* refusal() const {
    if (is_given && data == nullptr) return "rstd is nullptr";
    if (reinterpret_cast<uintptr_t>(data) % sizeof(F) != 0) return "rstd is not aligned to its element type";
    return nullptr;
  }
  memory_overlap::Region region(int64_t rows) const { return {data, rows * static_cast<int64_t>(sizeof(F))}; }
};

template <class T>
constexpr bool has_rstd = false;
template <class T, class F>
constexpr bool has_rstd<WithRstd<T, F>> = true;

// A tensor without its rows' rstd, and that rstd.
template <class T>
const T& tensor_of(const T& tensor) {
  return tensor;
}
template <class T, class F>
const T& tensor_of(const WithRstd<T, F>& both) {
  return both.tensor;
}
template <class F, class T>
Rstd<F> rstd_of(const T&) {
  return {};
}
template <class F, class T, class G>
Rstd<F> rstd_of(const WithRstd<T, G>& both) {
  static_assert(std::is_same_v<std::remove_const_t<G>, float>, "rstd is float32");
  return {true, both.rstd};
}

// R is void if no residual is added.
template <class X, class R, class W, class Y>
struct Call {
  Tensor<const X> x;
  Tensor<const R> residual;
  Tensor<R> residual_out;
  const W* weight;
  Tensor<Y> y;
  int64_t rows, cols;
  Rstd<float> rstd = {};
};

template <class T>
Tensor<T> as_tensor(T* data) {
  return {data};
}
template <class T>
Tensor<T> as_tensor(const Tensor<T>& tensor) {
  return tensor;
}
inline Tensor<void> as_tensor(std::nullptr_t) { return {nullptr}; }

template <class T>
using Element = std::remove_const_t<std::remove_pointer_t<decltype(as_tensor(std::declval<T>()).data)>>;

template <class X, class R, class RO, class W, class Y>
auto call_of(const X& x, const R& residual, const RO& residual_out, W weight, const Y& to, int64_t rows, int64_t cols) {
  const auto& y = tensor_of(to);
  using YE = Element<decltype(y)>;
  using XE = Element<X>;
  using RE = Element<R>;
  using WE = std::conditional_t<std::is_null_pointer_v<W>, XE, Element<W>>;
  static_assert(std::is_same_v<RE, Element<RO>>, "residual_out has the element type of residual");
  static_assert(is_element<XE> && is_element<WE> && is_element<YE> && (std::is_void_v<RE> || is_element<RE>),
                "elements are float, __half or __nv_bfloat16");
  const auto constant = [](const auto& tensor) {
    return Tensor<std::add_const_t<std::remove_pointer_t<decltype(tensor.data)>>>{tensor.data, tensor.layout};
  };
  return Call<XE, RE, WE, YE>{
      constant(as_tensor(x)), constant(as_tensor(residual)), as_tensor(residual_out), weight, as_tensor(y), rows, cols,
      rstd_of<float>(to)};
}

// --- What is refused -------------------------------------------------------------------------------------------------

// Why a call is refused: a sentence in pieces, some of which are names. False if it is not refused.
struct Refusal {
  const char *begin = nullptr, *second = "", *third = "", *end = "";

  explicit operator bool() const { return begin != nullptr; }
  // The sentence, until this thread asks for another one; nullptr if there is none.
  const char* text() const {
    if (begin == nullptr) return nullptr;
    static thread_local char whole[160];
    std::snprintf(whole, sizeof whole, "%s%s%s%s", begin, second, third, end);
    return whole;
  }
};

using memory_overlap::Region;

// A layout with the strides that it stands for. Those that no row needs are always the same, so that two layouts that
// mean the same are equal.
inline Layout with_strides(Layout layout, int64_t rows, int64_t cols) {
  if (layout.heads == 1) layout.head_stride = 0;
  if (layout.heads == rows || (layout.heads == 1 && layout.stride == kContiguous))
    layout.stride = cols;
  else if (layout.stride == kContiguous)  // unsigned, since it may be too far, which is refused later
    layout.stride =
        static_cast<int64_t>(static_cast<uint64_t>(layout.heads) * static_cast<uint64_t>(layout.head_stride));
  return layout;
}

// A tensor without its type.
struct Matrix {
  const void* data = nullptr;
  int64_t element = 1;  // bytes
  Layout layout = {0};
  int64_t rows = 0, cols = 0;

  uintptr_t address() const { return reinterpret_cast<uintptr_t>(data); }
  Region region() const {
    return {
        data, element * cols, rows / layout.heads, element * layout.stride, layout.heads, element * layout.head_stride};
  }
};

inline bool operator==(const Layout& a, const Layout& b) {
  return a.stride == b.stride && a.heads == b.heads && a.head_stride == b.head_stride;
}

// Whether no two rows overlap: the smaller stride steps over a row, and the larger one over everything that the smaller
// one reaches.
inline bool rows_are_apart(const Matrix& m) {
  int64_t inner_stride = std::abs(m.layout.head_stride), inner_count = m.layout.heads;
  int64_t outer_stride = std::abs(m.layout.stride), outer_count = m.rows / m.layout.heads;
  if (inner_count == 1 || (outer_count > 1 && outer_stride < inner_stride)) {
    std::swap(inner_stride, outer_stride);
    std::swap(inner_count, outer_count);
  }
  return (inner_count <= 1 || inner_stride >= m.cols) &&
         (outer_count <= 1 || outer_stride >= (inner_count - 1) * inner_stride + m.cols);
}

// Two tensors, of which one at least is written, may be the same one. Otherwise they have nothing in common.
inline bool collide(const Matrix& a, const Matrix& b, bool same_type) {
  return !(same_type && a.data == b.data && a.layout == b.layout) && a.region().overlaps(b.region());
}

// Whether accesses to packs of n elements begin, in all rows, at the same distance from a multiple of their size as in
// `other`; or without another, at multiples of their size.
inline bool is_aligned(const Matrix& m, int64_t n, const Matrix& other = {}) {
  const int64_t step = std::min<int64_t>(16, n * m.element) / m.element;  // of an access
  const auto alike = [&](int64_t here, int64_t there) { return (here - there) % step == 0; };
  const int64_t there = other.data ? static_cast<int64_t>(other.address() / other.element) : 0;
  return alike(static_cast<int64_t>(m.address() / m.element), there) &&
         (m.rows <= m.layout.heads || alike(m.layout.stride, other.layout.stride)) &&
         (m.layout.heads == 1 || alike(m.layout.head_stride, other.layout.head_stride));
}

template <class T>
constexpr int64_t element_bytes = std::is_void_v<T> ? 0 : sizeof(std::conditional_t<std::is_void_v<T>, char, T>);

// The tensors of a call. Without a residual, there are the first two.
template <class X, class R, class W, class Y>
struct Matrices {
  static constexpr int kCount = std::is_void_v<R> ? 2 : 4;
  Matrix x, y, residual, residual_out;

  explicit Matrices(const Call<X, R, W, Y>& c)
      : x(of(c.x, c)), y(of(c.y, c)), residual(of(c.residual, c)), residual_out(of(c.residual_out, c)) {}
  template <class T>
  static Matrix of(const Tensor<T>& tensor, const Call<X, R, W, Y>& c) {
    const Layout layout = with_strides(tensor.layout, c.rows, c.cols);
    return {tensor.data, element_bytes<std::remove_const_t<T>>, layout, c.rows, c.cols};
  }
  // The name of the first tensor that is so; nullptr if none is.
  template <class Predicate>
  const char* first(const Predicate& is, const Names& names = {}) const {
    const Matrix* const all[] = {&x, &y, &residual, &residual_out};
    const char* const called[] = {names.x, names.y, names.residual, names.residual_out};
    for (int i = 0; i < kCount; ++i)
      if (is(*all[i])) return called[i];
    return nullptr;
  }
  template <class Predicate>
  bool any(const Predicate& is) const {
    return first(is) != nullptr;
  }
  bool all_aligned(int64_t n, const Matrix& other = {}) const {
    return !any([&](const Matrix& m) { return !is_aligned(m, n, other); });
  }
};

// What every call needs, also one without rows.
inline const char* refusal_of_shape(int64_t rows, int64_t cols, int64_t heads, const Options& options) {
  if (rows < 0) return "rows is negative";
  if (cols < 1) return "cols is less than 1";
  if (!(options.eps >= 0.0f) || !std::isfinite(options.eps)) return "eps is negative or not finite";
  if (!std::isfinite(options.weight_offset)) return "weight_offset is not finite";
  if (heads < 1) return "a layout has less than one head";
  if (rows % heads != 0) return "rows is not a multiple of the layouts' heads";
  return nullptr;
}

// What a tensor's rows need, if there are any.
inline const char* refusal_of_layout(const Matrix& m, int64_t heads) {
  const int64_t most = INT64_MAX / 64 / m.rows;
  const auto is_far = [=](int64_t stride) { return stride > most || stride < -most; };
  if (m.layout.heads != heads) return "the layouts have different heads";
  if (is_far(m.layout.stride) || is_far(m.layout.head_stride)) return "a stride is too large for 64-bit addresses";
  return nullptr;
}

// Why a call is refused. A call without rows may be given anything that has a sensible shape.
template <class X, class R, class W, class Y>
Refusal refusal(const Call<X, R, W, Y>& call, const Options& options, const Names& names = {}, bool needs_y = true) {
  constexpr bool adds = !std::is_void_v<R>;
  const int64_t heads = call.x.layout.heads;
  if (const char* wrong = refusal_of_shape(call.rows, call.cols, heads, options)) return {wrong};
  if (call.rows == 0) return {};
  if (call.cols > INT64_MAX / 64 / call.rows) return {"rows * cols is too large for 64-bit addresses"};

  const Matrices<X, R, W, Y> m(call);
  constexpr const char* kMisaligned = " is not aligned to its element type";
  const auto is_missing = [&](const Matrix& t) { return t.data == nullptr && (needs_y || &t != &m.y); };
  if (const char* name = m.first(is_missing, names)) return {name, " is nullptr"};
  if (const char* name = m.first([](const Matrix& t) { return t.address() % t.element != 0; }, names))
    return {name, kMisaligned};
  const char* wrong = nullptr;
  if (m.any([&](const Matrix& t) { return (wrong = refusal_of_layout(t, heads)) != nullptr; })) return {wrong};
  const auto overlap = [](const char* written, const char* other) {
    return Refusal{written, " overlaps ", other, ", and is not the same tensor"};
  };
  if (!rows_are_apart(m.y)) return {"rows of ", names.y, " overlap each other"};
  if (adds && !rows_are_apart(m.residual_out)) return {"rows of ", names.residual_out, " overlap each other"};
  if (collide(m.x, m.y, std::is_same_v<X, Y>)) return overlap(names.y, names.x);
  if (reinterpret_cast<uintptr_t>(call.weight) % sizeof(W) != 0) return {names.weight, kMisaligned};
  if (reinterpret_cast<uintptr_t>(options.workspace) % 16 != 0) return {"workspace is not aligned to 16 bytes"};
  if (const char* wrong = call.rstd.refusal()) return {wrong};
  const Region weight(call.weight, call.cols * static_cast<int64_t>(sizeof(W)));
  const Region workspace(options.workspace, kWorkspaceBytes), rstd = call.rstd.region(call.rows);
  if (weight.overlaps(m.y.region())) return {names.y, " overlaps ", names.weight};
  if constexpr (adds) {
    if (weight.overlaps(m.residual_out.region())) return {names.residual_out, " overlaps ", names.weight};
    if (collide(m.x, m.residual_out, std::is_same_v<X, R>)) return overlap(names.residual_out, names.x);
    if (collide(m.residual, m.residual_out, true)) return overlap(names.residual_out, names.residual);
    if (collide(m.residual, m.y, std::is_same_v<R, Y>)) return overlap(names.y, names.residual);
    if (collide(m.residual_out, m.y, false)) return {names.y, " overlaps ", names.residual_out};
  }
  if (workspace.overlaps(weight) || m.any([&](const Matrix& t) { return workspace.overlaps(t.region()); }))
    return {"workspace overlaps a tensor"};
  if (rstd.overlaps(weight) || m.any([&](const Matrix& t) { return rstd.overlaps(t.region()); }))
    return {"rstd overlaps a tensor"};
  if (workspace.overlaps(rstd)) return {"workspace overlaps rstd"};
  const int64_t tokens = call.rows / heads;
  if (std::min(heads, tokens) > kMostHeads) return {"heads and rows / heads are both above 65535"};
  return {};
}

// --- How a call becomes a problem ------------------------------------------------------------------------------------

// From rows to rows per head. Heads that follow each other as rows do are folded into rows. Of the two directions the
// one becomes the rows' in which neighbours are near in memory, if it has enough of them; or else the one that has
// more.
template <class P, class M>
void fold_heads(P& p, const M& m) {
  constexpr int kCount = M::kCount;
  Steps* const steps[] = {&p.x_steps, &p.y_steps, &p.residual_steps, &p.residual_out_steps};
  const Matrix* const tensors[] = {&m.x, &m.y, &m.residual, &m.residual_out};
  for (int i = 0; i < kCount; ++i) *steps[i] = {tensors[i]->layout.stride, tensors[i]->layout.head_stride};
  int64_t heads = m.x.layout.heads;
  Steps of_rstd = {heads, 1};
  const bool fold = std::all_of(steps, steps + kCount, [&](const Steps* s) { return s->row == heads * s->head; });
  p.rows /= heads;
  if (heads > 1 && (p.rows == 1 || fold)) {
    for (Steps* s : steps) s->row = s->head;
    of_rstd.row = of_rstd.head;
    p.rows *= heads;
    heads = 1;
  }
  const bool near = std::abs(p.x_steps.head) < std::abs(p.x_steps.row) && heads >= 8 && p.rows <= kMostHeads;
  if (p.rows < heads || near) {
    for (Steps* s : steps) std::swap(s->row, s->head);
    std::swap(of_rstd.row, of_rstd.head);
    std::swap(p.rows, heads);
  }
  if constexpr (P::kStoresRstd) p.rstd_steps = of_rstd;
  p.heads = static_cast<unsigned>(heads);
}

}  // namespace detail
}  // namespace rms_norm
