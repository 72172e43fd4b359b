// The gradients of forward() and fused_add_rms_norm().
//
//   g       = dy · (weight_offset + weight)
//   dx      = rstd · (g - x · rstd² · mean(g · x)) + dsum          rstd = 1 / sqrt(mean(x²) + eps)
//   dweight = the sum of dy · x · rstd over all rows
//
// Sums are computed in float32, in a fixed order: the same call gives the same bits on all GPUs of one kind. The order
// within a row depends on the types and cols alone, so that a row's dx does not depend on the rows beside it, nor on
// where tensors lie. dweight is a sum over all rows, whose order also depends on the number of multiprocessors, on
// whether rstd is stored, and on whether dx takes the place of x or dy. Where forward rounds to llama's rule, the
// gradient is still that of the formula.
//
// x and dy are read once, and the sum of squares comes with the other sum of the row, unless the forward pass has
// stored rstd. That holds for dy of x's type, a weight of x's type or in float32, and rows of up to 65536 elements (16
// KB of x below compute capability 9.0). Others are read twice, one element at a time. README.md tells how the kernels
// work.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arguments.cuh"
#include "few_rows.cuh"
#include "gradients.cuh"
#include "launch.cuh"
#include "policies/backward/h200.cuh"

namespace rms_norm {

namespace detail {

// The most rows of partial sums that a call makes: one for each block or cluster of blocks. Each has room for whole
// lines of columns, and the first one begins at a multiple of 16 bytes.
constexpr int64_t kMostPartials = 640, kMostPartialColumns = 50 * 32768, kPartialsAlignment = 16;
inline int64_t partials_of(int64_t rows, int64_t cols) {
  return std::min(rows, std::clamp<int64_t>(kMostPartialColumns / cols, 20, kMostPartials));
}
inline int64_t weight_blocks(int64_t cols) { return (cols + kWeightColumns - 1) / kWeightColumns; }
inline int64_t partial_pitch(int64_t cols) { return weight_blocks(cols) * kWeightColumns; }

}  // namespace detail

// The bytes that backward() needs for dweight; 0 for a shape that it refuses or that has no rows.
inline size_t backward_workspace_bytes(int64_t rows, int64_t cols) {
  if (rows < 1 || cols < 1 || cols > INT64_MAX / 64 / detail::kMostPartials) return 0;
  return sizeof(float) * static_cast<size_t>(detail::partials_of(rows, cols) * detail::partial_pitch(cols)) +
         detail::kPartialsAlignment;
}

namespace detail {

template <class X, class W, class Y>
struct BackwardCall {
  Tensor<const Y> dy;
  Tensor<const X> dsum, x;
  const W* weight;
  Tensor<X> dx;
  W* dweight;
  void* workspace;
  int64_t rows, cols;
  Rstd<const float> rstd = {};

  template <class T>
  Matrix matrix(const Tensor<T>& tensor) const {
    return {tensor.data, sizeof(T), with_strides(tensor.layout, rows, cols), rows, cols};
  }
};

template <class DY, class DS, class X, class W, class DX, class DW>
auto backward_call_of(const DY& dy, const DS& dsum, const X& from, W weight, const DX& dx, DW dweight, void* workspace,
                      int64_t rows, int64_t cols) {
  const auto& x = tensor_of(from);
  using XE = Element<decltype(x)>;
  using YE = Element<DY>;
  using WE = std::conditional_t<std::is_null_pointer_v<W>, XE, Element<W>>;
  static_assert(is_element<XE> && is_element<YE> && is_element<WE>, "elements are float, __half or __nv_bfloat16");
  static_assert(std::is_same_v<Element<DX>, XE>, "dx has the element type of x");
  const auto constant = [](const auto& tensor) {
    return Tensor<std::add_const_t<std::remove_pointer_t<decltype(tensor.data)>>>{tensor.data, tensor.layout};
  };
  Tensor<const XE> other = {nullptr};
  if constexpr (!std::is_null_pointer_v<DS>) other = constant(as_tensor(dsum));
  return BackwardCall<XE, WE, YE>{
      constant(as_tensor(dy)),   other, constant(as_tensor(x)), weight, as_tensor(dx), dweight, workspace, rows, cols,
      rstd_of<const float>(from)};
}

template <class X, class W, class Y>
const char* refusal(const BackwardCall<X, W, Y>& call, const Options& options) {
  const int64_t heads = call.x.layout.heads;
  if (const char* wrong = refusal_of_shape(call.rows, call.cols, heads, options)) return wrong;
  if (call.dweight && !call.weight) return "dweight is given, and weight is nullptr";
  if (reinterpret_cast<uintptr_t>(call.weight) % sizeof(W) != 0) return "weight is not aligned to its element type";
  if (reinterpret_cast<uintptr_t>(call.dweight) % sizeof(W) != 0) return "dweight is not aligned to its element type";
  if (call.dweight && weight_blocks(call.cols) > INT32_MAX) return "cols is too large for dweight";
  if (call.rows == 0) return nullptr;
  if (call.cols > INT64_MAX / 64 / std::max<int64_t>(call.rows, kMostPartials))
    return "rows * cols is too large for 64-bit addresses";
  const Matrix dy = call.matrix(call.dy), dsum = call.matrix(call.dsum), x = call.matrix(call.x),
               dx = call.matrix(call.dx);
  if (!dy.data) return "dy is nullptr";
  if (!x.data) return "x is nullptr";
  if (!dx.data) return "dx is nullptr";
  const auto is_misaligned = [](const Matrix& m) { return m.address() % m.element != 0; };
  if (is_misaligned(dy)) return "dy is not aligned to its element type";
  if (is_misaligned(x)) return "x is not aligned to its element type";
  if (is_misaligned(dx)) return "dx is not aligned to its element type";
  if (is_misaligned(dsum)) return "dsum is not aligned to its element type";
  const Matrix* const tensors[] = {&dy, &x, &dx, dsum.data ? &dsum : &x};
  for (const Matrix* m : tensors)
    if (const char* wrong = refusal_of_layout(*m, heads)) return wrong;
  if (!rows_are_apart(dx)) return "rows of dx overlap each other";
  if (collide(x, dx, true)) return "dx overlaps x, and is not the same tensor";
  if (collide(dy, dx, std::is_same_v<X, Y>)) return "dx overlaps dy, and is not the same tensor";
  if (dsum.data && collide(dsum, dx, true)) return "dx overlaps dsum, and is not the same tensor";
  if (const char* wrong = call.rstd.refusal()) return wrong;
  const Region rstd = call.rstd.region(call.rows);
  if (rstd.overlaps(dx.region())) return "dx overlaps rstd";
  if (call.dweight && !call.workspace) return "dweight is wanted, and workspace is nullptr";
  if (reinterpret_cast<uintptr_t>(call.workspace) % sizeof(float) != 0) return "workspace is not aligned to 4 bytes";
  const int64_t weight_bytes = call.cols * static_cast<int64_t>(sizeof(W));
  const Region weight(call.weight, weight_bytes), dweight(call.dweight, weight_bytes);
  const Region workspace(call.dweight ? call.workspace : nullptr, backward_workspace_bytes(call.rows, call.cols));
  if (weight.overlaps(dx.region())) return "dx overlaps weight";
  if (dweight.overlaps(weight)) return "dweight overlaps weight";
  if (workspace.overlaps(weight) || workspace.overlaps(dweight)) return "workspace overlaps weight or dweight";
  if (dweight.overlaps(rstd)) return "dweight overlaps rstd";
  if (workspace.overlaps(rstd)) return "workspace overlaps rstd";
  for (const Matrix* m : tensors) {
    if (dweight.overlaps(m->region())) return "dweight overlaps a tensor";
    if (workspace.overlaps(m->region())) return "workspace overlaps a tensor";
  }
  return nullptr;
}

// Mixtures of types for which the fast kernels are compiled: those of training, where dy has the type of x, and the
// weight too or it is in float32. Others have the kernel for rows of any length.
template <class X, class W, class Y>
constexpr bool has_fast_gradients = std::is_same_v<X, Y> && (std::is_same_v<W, X> || std::is_same_v<W, float>);

// Few rows are read again if their partial sums would be so many numbers, those of blocks with whole rows or those of
// clusters, or half as many in a dependent launch; and if there are at most so many rows.
constexpr int64_t kReadAgainFrom = 176 << 10, kReadAgainFromClusters = 256 << 10, kReadAgainRows = 256;
// Whether rows can be read again: x and dy are still there when dx has been stored.
template <class P>
bool keeps_inputs(const P& p) {
  return p.heads == 1 && p.dx.data != p.x.data && p.dx.data != p.dy.data;
}

// Bytes on their way to a multiprocessor. With more, large problems take longer: on an H200, 8192 x 4096 in bfloat16
// take 53 us with 48 KB, and 60 us with 96 KB. A block fetches a row's successor before it has the row's sums if all
// that is on its way is little, and in a cluster, which waits longer for sums.
constexpr int64_t kFewInFlight = 48 << 10, kMostInFlight = 84 << 10;

// Of clusters there are as many as rows of partial sums. One alone writes dweight.
template <class Shape, class P>
cudaError_t launch_rows(P& p, dim3 threads, int64_t clusters, int parts, int64_t processors, cudaStream_t stream) {
  using Memory = RowMemory<Shape>;
  static_assert(Shape::N * sizeof(typename P::Input) == sizeof(uint4));
  const int lanes = static_cast<int>(threads.x), teams = static_cast<int>(threads.y), block = lanes * teams;
  p.stage_packs = (p.dsum.data ? 3 : 2) * Memory::of_tensor(lanes, teams);
  const int stage_bytes = p.stage_packs * static_cast<int>(sizeof(uint4));
  const int sums_bytes = threads.y > 1 ? static_cast<int>(sizeof(float)) * block * Shape::kVectors * Shape::N : 0;
  constexpr int kWithoutAsking = (48 << 10) - kStaticBytes;
  p.parts = parts, p.part_packs = (p.packs + parts - 1) / parts;
  const int64_t in_flight = largest_share(clusters * parts, processors) * stage_bytes;
  p.stages = kMostStages * in_flight <= kMostInFlight ? kMostStages : 2;
  p.fetches_early = (kMostStages * in_flight <= kFewInFlight || parts > 1) && !p.dsum.data;
  p.step = clusters * teams;
  const RowPlace step = place_of(p.step, p.heads);
  const auto set_steps = [&](const auto& tensor, GradientSteps& steps) {
    steps.step = step.token * tensor.stride + step.head * steps.head;
    steps.wrap = tensor.stride - p.heads * steps.head;
  };
  set_steps(p.x, p.x_steps), set_steps(p.dy, p.dy_steps);
  set_steps(p.dsum, p.dsum_steps), set_steps(p.dx, p.dx_steps);
  p.head_step = static_cast<int>(step.head);
  p.turns = static_cast<int>(p.rows / p.step), p.longer = static_cast<int>(p.rows % p.step);
  if (clusters == 1) p.partial = nullptr;
  // To read at most two rows of each cluster again takes less time than to write partial sums and to read those.
  p.reads_again = p.partial && Shape::kAligned && !Shape::kWarps && p.rows <= 2 * clusters && keeps_inputs(p);
  const auto kernel = row_gradients<Shape, P>;
  if (std::max(p.stages * stage_bytes, sums_bytes) > kWithoutAsking) {
    int most_bytes = 0;
    if (const cudaError_t error = most_shared_bytes(most_bytes)) return error;
    p.stages = std::clamp(most_bytes / stage_bytes, 1, p.stages);
    if (const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes))
      return error;
  }
  const int shared_bytes = std::max(p.stages * stage_bytes, sums_bytes);
  const Grid grid = {dim3(static_cast<unsigned>(parts), static_cast<unsigned>(clusters)), threads, shared_bytes, parts,
                     p.dependent};
  return launch(stream, grid, kernel, p);
}

// For few rows: the blocks of each cluster share the columns of all of its rows. See few_rows.cuh.
template <class Shape, class P>
cudaError_t launch_few(P& p, int64_t& partials, const FewRows& few, cudaStream_t stream) {
  using Problem = FewRowsProblem<typename P::Input, typename P::Weight, typename P::Output, P::kHasRstd>;
  const int own_warps = few_rows_block(few.parts, p.packs);
  partials = largest_share(p.rows, few.rows * Shape::kRows);
  if (partials == 1) p.partial = nullptr;
  // Not if the second kernel would have to wait for rstd.
  const int64_t from = few.parts == 1 ? kReadAgainFrom : kReadAgainFromClusters;
  p.reads_again = P::kHasRstd && p.partial && p.rows <= kReadAgainRows &&
                  partials * p.cols * (p.dependent ? 2 : 1) >= from && keeps_inputs(p);
  Problem of = {};
  of.x = p.x.data, of.x_stride = p.x.stride, of.dy = p.dy.data, of.dy_stride = p.dy.stride, of.weight = p.weight;
  of.rows = static_cast<int>(p.rows), of.packs = p.packs, of.cache = p.reads;
  of.row_threads = few_rows_threads(p.packs);
  of.dependent = p.dependent, of.lets_next_start = p.dependent || p.partial, of.adds = p.dsum.data;
  of.inverse_cols = p.inverse_cols, of.eps = p.eps, of.weight_offset = p.weight_offset;
  of.dx = p.dx.data, of.dx_stride = p.dx.stride;
  of.partial = p.partial, of.dweight = p.reads_again ? nullptr : p.dweight, of.pitch = p.pitch;
  of.dsum = p.dsum.data, of.dsum_stride = p.dsum.stride;
  if constexpr (P::kHasRstd) of.rstd = p.rstd;
  const Grid grid = {dim3(static_cast<unsigned>(few.parts), static_cast<unsigned>(partials)),
                     dim3(static_cast<unsigned>(32 * own_warps), static_cast<unsigned>(few.rows)),
                     Shape::shared_bytes(own_warps, few.rows), few.parts, p.dependent};
  return launch(stream, grid, few_row_gradients<Shape, Problem>, of);
}

// dweight of few rows, from x and dy again.
template <int N, class P>
cudaError_t launch_weight_of_rows(const P& p, bool begins_early, bool lets_next_start, cudaStream_t stream) {
  using X = typename P::Input;
  using W = typename P::Weight;
  using Y = typename P::Output;
  WeightOfRowsProblem<X, W, Y> of = {};
  of.x = p.x.data, of.x_stride = p.x.stride, of.dy = p.dy.data, of.dy_stride = p.dy.stride;
  of.rstd = p.partial, of.is_new = true;
  if constexpr (P::kHasRstd) of.rstd = p.rstd, of.is_new = false;
  of.rows = static_cast<int>(p.rows), of.packs = p.packs, of.cache = p.reads;
  of.dweight = p.dweight, of.dependent = lets_next_start;
  // At least 32 bytes of each row, and about one block on each multiprocessor.
  int lanes = 2, at_once = 1;
  while (lanes < kPackLanes && lanes * 256 <= p.packs) lanes *= 2;
  while (lanes * at_once < 32 || (lanes * at_once < kColumnThreads && at_once < p.rows)) at_once *= 2;
  Grid grid = {dim3(static_cast<unsigned>((p.packs + lanes - 1) / lanes)), dim3(lanes, at_once)};
  grid.dependent = begins_early;
  return launch(stream, grid, weight_gradient_of_rows<N, X, W, Y>, of);
}

// Turns of a block, one row each. With fewer blocks that all have as many, the last turn leaves none idle, and there
// are fewer partial sums. That is worth it where turns are few, and also where they are many, since fewer blocks are
// lost.
constexpr int64_t kFewTurns = 8, kManyTurns = 16;

// The order in which a kernel adds up a row depends on the row's length alone. `partials` are the most blocks or
// clusters that there may be, and become what there are.
template <class Policy, int N, bool kAligned, class P>
cudaError_t launch_gradients(P& p, int64_t& partials, const Device& device, cudaStream_t stream) {
  const int64_t packs = (p.cols + N - 1) / N, processors = device.multiprocessors;
  // most: 0 where a GPU holds no whole cluster. Between few and many turns, some blocks have one turn less.
  const auto begin = [&](int64_t most, int64_t rows_of_block = 1, int64_t many_turns = kManyTurns) {
    const int64_t row_blocks = largest_share(p.rows, rows_of_block);
    const int64_t groups = std::min({partials, std::max<int64_t>(most, 1), row_blocks});
    const int64_t turns = largest_share(row_blocks, groups);
    return partials = turns <= kFewTurns || turns >= many_turns ? largest_share(row_blocks, turns) : groups;
  };
  const auto in_long_rows = [&] {
    Grid grid = {dim3(static_cast<unsigned>(begin(4 * processors))), dim3(kGradientThreads)};
    grid.dependent = p.dependent;
    return launch(stream, grid, long_row_gradients<P>, p);
  };
  if constexpr (has_fast_gradients<typename P::Input, typename P::Weight, typename P::Output>) {
    if (p.heads > INT32_MAX) return in_long_rows();  // the other kernels count them in 32 bits
    p.packs = static_cast<int>(std::min<int64_t>(packs, INT32_MAX));
    // Eight warps on a multiprocessor, so many times. Rows that are not aligned have more instructions to wait for.
    int64_t eights = kAligned ? 1 : 2;
    const auto in_warps = [&](auto vectors) {
      const int lanes = threads_of(p.packs, vectors, 32);
      const int64_t rows_of_warp = 32 / lanes, warps = largest_share(p.rows, rows_of_warp);
      using Shape = GradientShape<N, vectors, 32, kAligned>;
      // If one block needs only two turns for all rows, it writes dweight, and there is no second kernel.
      const bool is_alone = p.partial != nullptr && warps <= 2 * Shape::kThreads / 32;
      const int64_t blocks = is_alone ? 1 : Shape::kBlocks == 1 ? processors : eights * processors;
      const int64_t share = largest_share(warps, is_alone ? 1 : processors);
      const int64_t teams = rows_of_warp * std::min<int64_t>(share, Shape::kThreads / 32);
      const dim3 threads(static_cast<unsigned>(lanes), static_cast<unsigned>(teams));
      return launch_rows<Shape>(p, threads, begin(blocks, teams), 1, processors, stream);
    };
    if constexpr (kAligned) {
      const auto& table = few_rows_table<Policy, P::kHasRstd>();
      const FewRows few = few_rows(table, p.rows, p.packs, partials, device.has_clusters);
      if (few.parts > 0 && p.heads == 1) {
        const auto with = [&](auto shape) { return launch_few<decltype(shape)>(p, partials, few, stream); };
        const bool has_two = few_rows_vectors(p.packs) == 2, has_one_row = few.rows_of_thread == 1;
        if (has_one_row && few.parts == 1 && packs <= 2 * kShortPacks)
          return has_two ? with(FewShape<N, 2, 1, true>()) : with(FewShape<N, 4, 1, true>());
        if (has_one_row) return has_two ? with(FewShape<N, 2, 1>()) : with(FewShape<N, 4, 1>());
        return has_two ? with(FewShape<N, 2, 2>()) : with(FewShape<N, 4, 2>());
      }
      if (few.parts == 0) eights = few.rows;
    }
    if (packs <= kShortPacks) return in_warps(std::integral_constant<int, 2>());
    if (packs <= 2 * kShortPacks) return in_warps(std::integral_constant<int, 4>());
    constexpr int kThreads = 512;
    const auto in_blocks = [&](auto vectors, int parts) {
      const int64_t warps = largest_share(largest_share(packs, parts), 32 * vectors);
      // As many warps here, but two blocks of a cluster of eight. Such a cluster starts where eight multiprocessors
      // near each other are free, and a sixteenth of them have no seven others.
      const int64_t alone = kAligned ? largest_share(8 * eights, warps) : 8 * eights / warps;
      const int64_t blocks = parts == 1 ? alone : parts == kMostParts && warps <= 8 ? 2 : largest_share(8, warps);
      const int64_t usable = parts == kMostParts ? processors - processors / 16 : processors;
      // Fewer clusters of two take longer, even if all have as many turns, and fewer clusters of eight do not.
      const int64_t many_turns = parts == 1 ? kManyTurns : parts == kMostParts ? 0 : INT64_MAX;
      const int64_t groups = begin(blocks * (usable / parts), 1, many_turns);
      return launch_rows<GradientShape<N, vectors, kThreads, kAligned>>(p, dim3(static_cast<unsigned>(32 * warps)),
                                                                        groups, parts, processors, stream);
    };
    const auto fit = [&](int vectors, int parts) {
      return packs <= parts * vectors * kThreads && (parts == 1 || device.has_clusters);
    };
    const std::integral_constant<int, 2> two;
    for (const int parts : {1, 2, kMostParts})
      if (fit(two, parts)) return in_blocks(two, parts);
    if constexpr (N == 4)  // as many numbers in a thread
      if (fit(4, kMostParts)) return in_blocks(std::integral_constant<int, 4>(), kMostParts);
  }
  return in_long_rows();
}

// If x, dy and dx together have so many bytes or more, L2 is asked to keep what is read longer than dx, which would not
// fit there anyway. On an H200, nearly all such calls take less time then.
constexpr int64_t kLargeBytes = 64 << 20;

template <bool kHasRstd, class X, class W, class Y>
auto problem_of(const BackwardCall<X, W, Y>& call, const Options& options) {
  const Matrix x = call.matrix(call.x), dy = call.matrix(call.dy), dx = call.matrix(call.dx),
               dsum = call.matrix(call.dsum);
  const Matrix* const tensors[] = {&x, &dy, &dx, call.dsum.data ? &dsum : &x};
  int64_t heads = x.layout.heads;
  const bool fold = std::all_of(std::begin(tensors), std::end(tensors), [&](const Matrix* m) {
    return m->layout.stride == heads * m->layout.head_stride || call.rows == heads;
  });
  const auto rows_of = [&](const auto& tensor, const Matrix& m) {
    return Gradient<std::remove_pointer_t<decltype(tensor.data)>>{
        tensor.data, heads > 1 && fold ? m.layout.head_stride : m.layout.stride};
  };
  using Computed = BackwardProblem<X, W, Y>;
  std::conditional_t<kHasRstd, ProblemWithRstd<Computed>, Computed> p = {};
  if constexpr (kHasRstd) p.rstd = call.rstd.data;
  p.x = rows_of(call.x, x), p.dy = rows_of(call.dy, dy), p.dx = rows_of(call.dx, dx);
  p.dsum = rows_of(call.dsum, dsum);
  p.x_steps.head = x.layout.head_stride, p.dy_steps.head = dy.layout.head_stride;
  p.dsum_steps.head = dsum.layout.head_stride, p.dx_steps.head = dx.layout.head_stride;
  const auto memory_of = [&](const Matrix& m) {
    return m.data == dx.data ? Span{} : Span{m.region().begin, m.region().end()};
  };
  p.x_memory = memory_of(x), p.dy_memory = memory_of(dy), p.dsum_memory = memory_of(dsum);
  p.weight = call.weight, p.dweight = call.dweight;
  if (call.dweight) {
    const auto begin = reinterpret_cast<uintptr_t>(call.workspace) + kPartialsAlignment - 1;
    p.partial = reinterpret_cast<float*>(begin / kPartialsAlignment * kPartialsAlignment);
  }
  p.rows = call.rows, p.cols = call.cols, p.heads = fold ? 1 : heads;
  p.pitch = partial_pitch(p.cols);
  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = call.weight ? options.weight_offset : 1.0f;
  const bool is_large = 3 * p.rows * p.cols >= kLargeBytes / static_cast<int64_t>(sizeof(X));
  p.reads = property_of(options.cache, is_large ? Eviction::last : Eviction::normal);
  p.writes = property_of(options.cache, Eviction::normal);
  return p;
}

template <class Policy, bool kHasRstd, class X, class W, class Y>
cudaError_t run_backward(const BackwardCall<X, W, Y>& call, const Options& options, cudaStream_t stream) {
  if (refusal(call, options) != nullptr) return cudaErrorInvalidValue;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  const bool dependent = options.dependent_launch && device.has_clusters;
  WeightProblem<W> w = {nullptr, 0, partial_pitch(call.cols), call.dweight, call.cols, dependent};
  if (call.rows > 0) {
    constexpr int N = 16 / sizeof(X);
    auto p = problem_of<kHasRstd>(call, options);
    p.dependent = dependent;
    const auto is_row_aligned = [&](const void* row) { return is_aligned({row, sizeof(W), {}, 1, p.cols}, N); };
    const Matrix tensors[] = {call.matrix(call.x), call.matrix(call.dy), call.matrix(call.dx), call.matrix(call.dsum)};
    const bool aligned = p.cols % N == 0 && is_row_aligned(call.weight) && is_row_aligned(call.dweight) &&
                         std::all_of(std::begin(tensors), std::end(tensors),
                                     [&](const Matrix& m) { return m.data == nullptr || is_aligned(m, N); });
    w.count = partials_of(p.rows, p.cols);
    const cudaError_t error = aligned ? launch_gradients<Policy, N, true>(p, w.count, device, stream)
                                      : launch_gradients<Policy, N, false>(p, w.count, device, stream);
    if (error != cudaSuccess || p.partial == nullptr) return error;
    w.partial = p.partial;
    // Clusters of eight that start while this kernel's blocks still run get multiprocessors that they have to share.
    if (p.parts == kMostParts) w.dependent = false;
    if constexpr (has_fast_gradients<X, W, Y>)
      if (p.reads_again) return launch_weight_of_rows<N>(p, device.has_clusters, w.dependent, stream);
  }
  if (call.dweight == nullptr) return cudaSuccess;
  // A warp has four rows of partial sums. Warps that would have none change nothing.
  const int64_t weight_rows = std::clamp<int64_t>((w.count + 3) / 4 * 4, 4, kWeightRows);
  Grid grid = {dim3(static_cast<unsigned>(weight_blocks(call.cols))),
               dim3(kWeightLanes, static_cast<unsigned>(weight_rows))};
  grid.dependent = dependent || (device.has_clusters && call.rows > 0);
  return launch(stream, grid, weight_gradient<W>, w);
}

}  // namespace detail

// dx and dweight, from dy, the gradient of y.
//
//   dy        of y's shape and type
//   dsum      for fused_add_rms_norm(): the gradient of residual_out, of x's type; else nullptr
//   x         what was normalized: x of forward(), residual_out of fused_add_rms_norm(). Or WithRstd{x, rstd}, with the
//             rows' rstd that the forward call stored, which must not overlap what is written; eps has no effect then
//   weight    as in the forward call, or nullptr
//   dx        of x's type; for fused_add_rms_norm() the gradient of x and of the residual alike. It may be x, dy or
//             dsum, if types and layouts are the same; no other memory may overlap what is written
//   dweight   a pointer to cols elements of weight's type, or nullptr if it is not wanted
//   workspace backward_workspace_bytes(rows, cols) of device memory, aligned to 4 bytes, which need not be prepared;
//             nullptr will do without dweight. Calls that may run at the same time need a workspace each
//
// Of the options, eps, weight_offset, cache and dependent_launch count. Returns what the launches return; or
// cudaErrorInvalidValue, with nothing launched, for what explain_backward() then names. Policy is a type with two
// tables, as `make tune S=backward` writes it.
template <class Policy = policies::backward::H200, class DY, class DS, class X, class W, class DX, class DW>
cudaError_t backward(const DY& dy, const DS& dsum, const X& x, W weight, const DX& dx, DW dweight, void* workspace,
                     int64_t rows, int64_t cols, const Options& options = {}, cudaStream_t stream = nullptr) {
  return detail::run_backward<Policy, detail::has_rstd<X>>(
      detail::backward_call_of(dy, dsum, x, weight, dx, dweight, workspace, rows, cols), options, stream);
}

// Why a call with these arguments is refused: one sentence. nullptr if it is not refused.
template <class DY, class DS, class X, class W, class DX, class DW>
const char* explain_backward(const DY& dy, const DS& dsum, const X& x, W weight, const DX& dx, DW dweight,
                             void* workspace, int64_t rows, int64_t cols, const Options& options = {}) {
  return detail::refusal(detail::backward_call_of(dy, dsum, x, weight, dx, dweight, workspace, rows, cols), options);
}

}  // namespace rms_norm
