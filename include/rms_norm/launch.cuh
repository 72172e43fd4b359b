// From a call to a kernel: its shape is chosen, and it is launched.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "arguments.cuh"
#include "in_order.cuh"
#include "kernels.cuh"
#include "policy.cuh"
#include "teams.cuh"

namespace rms_norm::detail {

// Of x: rows of more than kSplitBytes may be shared by all blocks of the GPU instead of a cluster's. If there are
// enough rows for a cluster on every multiprocessor, only up to kSplitMostBytes, which the GPU holds until they are
// written. In larger problems teams of blocks take such rows, and unaligned ones of more than kTeamBytes too; and from
// kTeamsLeastBytes on, if there are several teams, with more than kTeamsLeastRows rows each.
constexpr int64_t kSplitBytes = 128 << 10, kSplitMostBytes = 64 << 20;
constexpr int64_t kTeamBytes = 16 << 10, kTeamsLeastBytes = 16 << 20, kTeamsLeastRows = 4;

// Whether a call may have a use for a workspace. Callers ask before the size of the problem is checked, hence no
// product.
inline bool may_use_workspace(int64_t rows, int64_t row_bytes) {
  return rows > 0 && (row_bytes > kSplitBytes || (row_bytes > kTeamBytes && row_bytes >= kTeamsLeastBytes / rows));
}
static_assert(kWorkspaceBytes == kSplitBlocks / 2 * kSplitBlocks * sizeof(uint64_t), "see MemoryExchange");

// --- Launches --------------------------------------------------------------------------------------------------------

struct Device {
  int multiprocessors = 0;
  bool has_clusters = false;  // and dependent launches
  bool is_h100 = false;
};
inline cudaError_t query(Device& device) {
  int number = 0, architecture = 0;
  if (const cudaError_t error = cudaGetDevice(&number)) return error;
  if (const cudaError_t error = query_code<CUDA_BITS_ARCHITECTURES>(number, architecture)) return error;
  device.has_clusters = architecture >= 90;
  if (const cudaError_t error = query_h100(number, architecture, device.is_h100)) return error;
  return cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, number);
}

template <class P>
Grid grid_of(const P& p, int64_t blocks, dim3 threads, int shared_bytes = 0) {
  return {dim3(static_cast<unsigned>(blocks), p.heads), threads, shared_bytes, 1, p.dependent};
}

// Calls start() for as many rows of a head at a time as a grid may have, which most often are all of them.
template <class P, class Start>
cudaError_t in_grids(P& p, int64_t most_rows, Start start) {
  for (int64_t left = p.rows; left > 0; left -= most_rows) {
    p.rows = std::min(left, most_rows);
    if (const cudaError_t error = start()) return error;
    p.x += p.rows * p.x_steps.row, p.y += p.rows * p.y_steps.row;
    if constexpr (P::kStoresRstd) p.rstd += p.rows * p.rstd_steps.row;
    if constexpr (P::kAdds) {
      p.residual += p.rows * p.residual_steps.row;
      p.residual_out += p.rows * p.residual_out_steps.row;
    }
  }
  return cudaSuccess;
}

// The threads of a row that may be anywhere, in a kernel that is compiled for up to row_threads of them.
inline int threads_of(int packs, int vectors, int row_threads, int least = 1) {
  int threads = (packs + vectors - 1) / vectors;
  if (row_threads > 32) return std::max(64, (threads + 31) / 32 * 32);
  for (threads = std::max(threads, least); threads & (threads - 1);) ++threads;  // the next power of two
  return threads;
}

template <int N, int kVectors, int kRowThreads, Access access, class P>
cudaError_t launch_in_registers(P p, int block, const Device& device, cudaStream_t stream) {
  constexpr bool kContiguous = access == Access::contiguous, kRowOfBlock = kContiguous && kRowThreads > 32;
  constexpr int kLeast =
      access == Access::unaligned ? 16 / sizeof(typename P::Input) : 1;  // threads, for a row's head or tail
  p.packs = static_cast<int>(p.cols / N);
  const int threads = kRowOfBlock ? kRowThreads : threads_of(p.packs, kVectors, kRowThreads, kLeast);
  const int rows = kRowOfBlock ? 1 : std::max(1, block / threads);
  const auto with = [&](auto kernel) {
    return in_grids(p, INT32_MAX, [&] {
      int64_t blocks = (p.rows + rows - 1) / rows;
      if constexpr (in_turn<access, N, kVectors * p.kReads>) {
        const int64_t at_once = int64_t{device.multiprocessors} * (kTurnThreads / (threads * rows)) / p.heads;
        blocks = std::min(blocks, std::max<int64_t>(1, at_once / kTurnRows) * kTurnRows);
      }
      return launch(stream, grid_of(p, blocks, dim3(threads, rows)), kernel, p);
    });
  };
  if constexpr (kContiguous) {
    if (p.dependent) return with(contiguous_rows<N, kVectors, kRowThreads, true, P>);
    return with(contiguous_rows<N, kVectors, kRowThreads, false, P>);
  } else {
    return with(row_in_registers<N, kVectors, kRowThreads, access, P>);
  }
}

// What a block may have beside the shared memory of fixed size.
constexpr int kStaticBytes = 512;  // of fixed size, at most
inline cudaError_t most_shared_bytes(int& bytes) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device)) return error;
  const cudaError_t error = cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  bytes = std::max(0, bytes - kStaticBytes);
  return error;
}

// A row in `parts` blocks, which are a cluster, or all that there are. As many of its packs stay in shared memory as
// fit.
template <int N, int kVectors, int kBlock, int kParts, bool kWhole, Access access, class Exchange, class P>
cudaError_t launch_in_parts(P p, int parts, cudaStream_t stream) {
  const auto kernel = row_in_parts<N, kVectors, kBlock, kParts, kWhole, access, Exchange, P>;
  constexpr int kStep = kVectors * kBlock;
  constexpr int kStepBytes = kStep * sizeof(Pack<typename P::Kept, N>);
  const int64_t part_packs = (p.cols / N + parts - 1) / parts, steps = (part_packs + kStep - 1) / kStep;
  int saved = 0, most_bytes = 0;
  if (!kWhole && steps > 1) {
    if (const cudaError_t error = most_shared_bytes(most_bytes)) return error;
    saved = static_cast<int>(std::min<int64_t>(steps - 1, most_bytes / kStepBytes));
  }
  const int shared_bytes = saved * kStepBytes;
  // More than a kernel has without asking. Each call asks for as much, so that no other thread's call takes it back.
  if (shared_bytes + kStaticBytes > 48 << 10)
    if (const cudaError_t error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes))
      return error;
  return in_grids(p, INT32_MAX / parts, [&] {
    Grid grid = grid_of(p, p.rows * parts, dim3(kBlock), shared_bytes);
    grid.cluster = std::max(1, kParts);
    grid.all_at_once = kParts == 0;
    return launch(stream, grid, kernel, p, part_packs, parts, saved + 1);
  });
}
template <int N, int kVectors, int kBlock, int kParts, bool kWhole, Access access, class P>
cudaError_t launch_in_cluster(const P& p, cudaStream_t stream) {
  return launch_in_parts<N, kVectors, kBlock, kParts, kWhole, access, ClusterExchange>(p, kParts, stream);
}
template <int N, int kVectors, int kBlock, Access access, class P>
cudaError_t launch_across_gpu(const P& p, int parts, cudaStream_t stream) {
  return launch_in_parts<N, kVectors, kBlock, 0, false, access, MemoryExchange>(p, parts, stream);
}

// How many teams of blocks take rows of `packs` packs: as many as there may be if each has room for a row. 0 where
// there cannot be enough of them, or where another kernel is faster.
template <int N, Access access>
int count_teams(int64_t packs, int64_t rows, int blocks) {
  constexpr int kMost = team_packs<access>;
  const int64_t parts = (packs + kMost - 1) / kMost, bytes = packs * 16;
  const int teams = static_cast<int>(std::min(blocks / parts, rows));
  if (access != Access::unaligned) return bytes > kSplitBytes ? teams : 0;
  // Of 16-bit rows that two blocks would share, those of about 32 KB fill a block of another kernel well.
  return bytes > kTeamBytes * (N == 8 ? parts : 1) ? teams / N * N : 0;
}

template <int N, Access access, class P>
cudaError_t launch_in_teams(const P& p, int teams, int parts, cudaStream_t stream) {
  const auto kernel = rows_in_teams<N, access, P>;
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(TeamShared)))
    return error;
  Grid grid = grid_of(p, int64_t{teams} * parts, dim3(32, kTeamWarps + 1), sizeof(TeamShared));
  grid.all_at_once = true;
  const int part_packs = static_cast<int>((p.cols / N + parts - 1) / parts);
  return launch(stream, grid, kernel, p, parts, lines_of(part_packs));  // no two blocks share a line
}

// A stream may have fewer multiprocessors than the GPU, as in a green context: then blocks cannot all run at once,
// which this forgets, and the call takes a kernel that does not need it.
inline bool was_too_large(cudaError_t error) {
  if (error == cudaErrorCooperativeLaunchTooLarge) static_cast<void>(cudaGetLastError());
  return error == cudaErrorCooperativeLaunchTooLarge;
}

// --- The choice of a shape -------------------------------------------------------------------------------------------

// The threads of a block that share the longest row, or a block's part of it.
constexpr int row_threads(const Shape& shape) {
  return (shape.packs + shape.vectors * shape.parts - 1) / (shape.vectors * shape.parts);
}

// What a table may hold.
constexpr bool is_possible(const Shape& shape) {
  const int threads = row_threads(shape);
  if (shape.block % 32 != 0 || shape.block < 64 || shape.block > kMostThreads) return false;
  if (threads > (shape.parts > 1 ? shape.block : kMostThreads)) return false;
  if (shape.parts > 1) return shape.parts <= kMostParts && shape.block >= 256 && shape.access != Access::contiguous;
  if (threads <= 32) return shape.block <= 256;
  return shape.access != Access::contiguous || shape.block >= threads;
}

// The number of threads that its kernel is compiled for: the most of a row, or of a block if blocks share a row.
constexpr int kernel_threads(const Shape& shape) {
  const int threads = row_threads(shape);
  if (shape.parts > 1) return shape.block;
  if (threads <= 32) return 32;
  if (shape.access == Access::contiguous) return shape.block;
  const int most = std::max(threads, shape.block);
  return most <= 256 ? 256 : most <= 512 && shape.vectors >= 8 ? 512 : kMostThreads;  // more packs, more registers
}

inline cuda::access_property property_of(Eviction eviction) {
  if (eviction == Eviction::first) return cuda::access_property(cuda::access_property::streaming());
  if (eviction == Eviction::last) return cuda::access_property(cuda::access_property::persisting());
  return cuda::access_property(cuda::access_property::normal());
}
inline cuda::access_property property_of(Cache cache, Eviction tuned) {
  return property_of(cache == Cache::tuned ? tuned : cache == Cache::normal ? Eviction::normal : Eviction::first);
}

template <int N, int kPacks, int kVectors, int kBlock, int kParts, Access access, class P>
cudaError_t launch_shape(const P& p, const Device& device, cudaStream_t stream) {
  constexpr Shape shape = {kPacks, kAnySize, kVectors, kBlock, kParts, access, Eviction::normal};
  static_assert(is_possible(shape), "no kernel has this shape");
  if constexpr (kParts > 1)
    return launch_in_cluster<N, kVectors, kBlock, kParts, true, access>(p, stream);
  else
    return launch_in_registers<N, kVectors, kernel_threads(shape), access>(p, kBlock, device, stream);
}

template <class P>
bool is_contiguous(const P& p) {
  const auto is = [&](const Steps& steps) { return steps.row == p.cols || p.rows == 1; };
  return p.heads == 1 && is(p.x_steps) && is(p.y_steps) &&
         (!P::kAdds || (is(p.residual_steps) && is(p.residual_out_steps)));
}

// Packs of fewer bytes, for tensors that are not aligned alike: then a row belongs to one block, however long it is.
template <int N, class P>
constexpr bool is_narrow = N * sizeof(*std::declval<P>().x) < 8;

// What L2 does with the tensors: what the caller asks for, or else what the table says of reads. Writes leave first,
// but not in a problem for the contiguous shapes: most of these are small enough for their sums to stay until they are
// read.
template <class P>
void set_cache(P& p, Cache cache, Access access, Eviction reads) {
  p.reads = property_of(cache, reads);
  p.writes = property_of(cache, access == Access::contiguous ? Eviction::normal : Eviction::first);
}

// Rows that no table has: a cluster shares each, or a block where there are no clusters.
inline Shape long_shape(int64_t packs, bool adds, bool has_clusters) {
  const auto shape = [](int vectors, int block, int parts) {
    return Shape{0, kAnySize, vectors, block, parts, Access::strided, Eviction::last};
  };
  if (!has_clusters) return shape(4, kMostThreads, 1);
  if (!adds && packs <= 8 * 256 * kMostParts) return shape(8, 256, kMostParts);
  return shape(4, packs <= kLongPacks ? 256 : kMostThreads, kMostParts);
}
template <int N, Access access, class P>
cudaError_t launch_long(P p, Cache cache, const Device& device, cudaStream_t stream) {
  set_cache(p, cache, access, Eviction::last);
  if constexpr (!is_narrow<N, P>) {
    const Shape shape = long_shape(p.cols / N, P::kAdds, device.has_clusters);
    if constexpr (!P::kAdds)
      if (shape.vectors == 8) return launch_in_cluster<N, 8, 256, kMostParts, true, access>(p, stream);
    if (shape.block == 256) return launch_in_cluster<N, 4, 256, kMostParts, false, access>(p, stream);
    if (shape.parts > 1) return launch_in_cluster<N, 4, kMostThreads, kMostParts, false, access>(p, stream);
  }
  return launch_in_cluster<N, 4, kMostThreads, 1, false, access>(p, stream);
}

// What the choice of a shape depends on: a problem of `bytes` in rows of `packs`. If it is to be batch-invariant, its
// size and the gaps between its rows do not count, since both depend on what else is in the call: it gets what the
// table has for problems of any size.
struct Wanted {
  int64_t packs, bytes;
  bool is_contiguous, has_clusters, batch_invariant;
};
constexpr bool takes(const Shape& shape, const Wanted& wanted) {
  if (wanted.packs > shape.packs || (shape.parts > 1 && !wanted.has_clusters)) return false;
  if (wanted.batch_invariant) return shape.kilobytes == kAnySize && shape.access != Access::contiguous;
  return wanted.bytes <= shape.kilobytes * int64_t{1024} &&
         (shape.access != Access::contiguous || wanted.is_contiguous);
}

template <class Policy, bool kAdds>
constexpr const auto& table_of() {
  if constexpr (kAdds)
    return Policy::kFusedAdd;
  else
    return Policy::kForward;
}

// The first shape of a table that takes the problem. The table is known at compile time, so that no kernel is compiled
// that it does not name.
template <const auto& shapes, int N, Access longer, size_t i = 0, class P>
cudaError_t launch_first(P& p, const Wanted& wanted, Cache cache, const Device& device, cudaStream_t stream) {
  if constexpr (i == std::size(shapes)) {
    return launch_long<N, longer>(p, cache, device, stream);
  } else {
    constexpr Shape shape = shapes[i];
    if (!takes(shape, wanted)) return launch_first<shapes, N, longer, i + 1>(p, wanted, cache, device, stream);
    set_cache(p, cache, shape.access, shape.reads);
    return launch_shape<N, shape.packs, shape.vectors, shape.block, shape.parts, shape.access>(p, device, stream);
  }
}

// The order in which the kernel adds up that a batch-invariant problem with aligned tensors gets.
template <class Shapes>
Order order_of(const Shapes& shapes, const Wanted& wanted, bool adds) {
  const auto found =
      std::find_if(std::begin(shapes), std::end(shapes), [&](const Shape& s) { return takes(s, wanted); });
  const bool is_long = found == std::end(shapes);
  const Shape shape = is_long ? long_shape(wanted.packs, adds, wanted.has_clusters) : *found;
  if (is_long || shape.parts > 1)
    return {shape.vectors, shape.block, shape.parts, (wanted.packs + shape.parts - 1) / shape.parts,
            shape.block <= 256};
  const int most = kernel_threads(shape);
  return {shape.vectors, threads_of(static_cast<int>(wanted.packs), shape.vectors, most), 1, wanted.packs, most <= 256};
}
template <class Policy, int N, class P>
cudaError_t launch_in_order(P& p, cudaStream_t stream) {
  Device device;
  if (const cudaError_t error = query(device)) return error;
  p.dependent = p.dependent && device.has_clusters;
  const Wanted wanted = {p.cols / N, 0, false, device.has_clusters, true};
  const Order order = device.is_h100 ? order_of(table_of<PolicyOfH100<Policy>, P::kAdds>(), wanted, P::kAdds)
                                     : order_of(table_of<Policy, P::kAdds>(), wanted, P::kAdds);
  return in_grids(p, INT32_MAX, [&] {
    return launch(stream, grid_of(p, p.rows, dim3(std::max(32, order.threads))), row_in_order<N, P>, p, order);
  });
}

// N elements per pack: as many as 16 bytes hold, or fewer.
template <class Policy, int N, bool kAligned, class P>
cudaError_t dispatch(P& p, const Options& options, cudaStream_t stream) {
  constexpr Access longer = kAligned ? Access::strided : Access::unaligned;
  constexpr int64_t kInput = sizeof(typename P::Input), kResidual = P::kAdds ? 2 * sizeof(typename P::Kept) : 0;
  const int64_t rows = p.rows * p.heads, bytes = rows * p.cols * (kInput + sizeof(*p.y) + kResidual);
  const Cache cache = options.cache;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  p.dependent = p.dependent && device.has_clusters && bytes <= Policy::kDependentKilobytes * int64_t{1024};

  if constexpr (!is_narrow<N, P>) {
    const int together = std::min(kSplitBlocks, device.multiprocessors);
    const int64_t row_bytes = p.cols * kInput, x_bytes = rows * row_bytes;
    // How many blocks share a row on a workspace depends on how many rows there are.
    const bool has_workspace = p.workspace != nullptr && p.heads == 1 && !options.batch_invariant;
    if constexpr (!P::kAdds && N * kInput == 16) {
      const int teams = has_workspace && device.has_clusters ? count_teams<N, longer>(p.cols / N, rows, together) : 0;
      const bool many = x_bytes >= kTeamsLeastBytes && teams > 1 && rows > kTeamsLeastRows * teams;
      int shared_bytes = 0;
      if (teams > 0 && (many || x_bytes > kSplitMostBytes))
        if (const cudaError_t error = most_shared_bytes(shared_bytes)) return error;
      if (shared_bytes >= static_cast<int>(sizeof(TeamShared))) {
        set_cache(p, cache, longer, Eviction::last);
        const cudaError_t error = launch_in_teams<N, longer>(p, teams, together / teams, stream);
        if (!was_too_large(error)) return error;
      }
    }
    const bool fill = rows * kMostParts >= together;
    if (has_workspace && row_bytes > kSplitBytes && 2 * rows <= together && (!fill || x_bytes <= kSplitMostBytes)) {
      const int parts = static_cast<int>(together / rows);
      set_cache(p, cache, longer, Eviction::first);
      const cudaError_t error = p.cols / N <= parts * 4 * 256 ? launch_across_gpu<N, 4, 256, longer>(p, parts, stream)
                                : p.cols / N <= parts * 4 * 512
                                    ? launch_across_gpu<N, 4, 512, longer>(p, parts, stream)
                                    : launch_across_gpu<N, 4, kMostThreads, longer>(p, parts, stream);
      if (!was_too_large(error)) return error;
    }
  }
  // As many bytes as give each multiprocessor of the GPU that the table was measured on as much as one has here.
  const int64_t shared = bytes * Policy::kMultiprocessors / device.multiprocessors;
  const int64_t measured = std::max(bytes, std::min(shared, kMostCounted));
  const Wanted wanted = {p.cols / N, measured, is_contiguous(p), device.has_clusters, options.batch_invariant};
  if constexpr (!kAligned && N != 8)
    return launch_first<kUnalignedFloats, N, longer>(p, wanted, cache, device, stream);
  else if constexpr (!kAligned && !P::kAdds)
    return launch_first<kUnaligned, N, longer>(p, wanted, cache, device, stream);
  else if constexpr (!kAligned)
    return launch_first<kUnalignedFusedAdd, N, longer>(p, wanted, cache, device, stream);
  else if constexpr (is_narrow<N, P>)
    return launch_first<kNarrow, N, longer>(p, wanted, cache, device, stream);
  else if (device.is_h100)
    return launch_first<table_of<PolicyOfH100<Policy>, P::kAdds>(), N, longer>(p, wanted, cache, device, stream);
  else
    return launch_first<table_of<Policy, P::kAdds>(), N, longer>(p, wanted, cache, device, stream);
}

// A call: checked, made a problem, and launched by the widest accesses that its tensors allow. kStoresRstd: the call
// has memory for it.
template <class Policy, bool kStoresRstd = false, class X, class R, class W, class Y>
cudaError_t run(const Call<X, R, W, Y>& call, const Options& options, cudaStream_t stream) {
  if (refusal(call, options)) return cudaErrorInvalidValue;
  if (call.rows == 0) return cudaSuccess;
  const Matrices<X, R, W, Y> m(call);
  constexpr int kWide = 16 / sizeof(X), kWord = 4 / sizeof(X);
  const auto are_packs = [&](int n) {
    const Matrix weight{call.weight, sizeof(W), {}, 1, call.cols};
    return call.cols % n == 0 && m.all_aligned(n) && is_aligned(weight, n);
  };
  const bool wide = are_packs(kWide);
  const bool unaligned =
      !wide && !options.batch_invariant && call.cols >= kUnalignedPacks * kWide && m.all_aligned(kWide, m.x);
  const bool word = !wide && !unaligned && !options.batch_invariant && are_packs(kWord);

  using Norm = Problem<X, R, W, Y>;
  std::conditional_t<kStoresRstd, StoringProblem<Norm>, Norm> p = {};
  p.x = call.x.data, p.weight = call.weight, p.y = call.y.data;
  if constexpr (kStoresRstd) p.rstd = call.rstd.data;
  if constexpr (p.kAdds) p.residual = call.residual.data, p.residual_out = call.residual_out.data;
  p.rows = call.rows, p.cols = call.cols;
  p.inverse_cols = 1.0f / static_cast<float>(p.cols);
  p.eps = options.eps;
  p.weight_offset = call.weight ? options.weight_offset : 1.0f;
  p.round_first = options.rounding == Rounding::llama;
  p.dependent = options.dependent_launch;
  p.workspace = static_cast<uint64_t*>(options.workspace);
  fold_heads(p, m);

  if (wide) return dispatch<Policy, kWide, true>(p, options, stream);
  // An order that depends on the length of a row alone: that of the wide accesses where packs fill a row.
  if (options.batch_invariant && call.cols % kWide == 0) return launch_in_order<Policy, kWide>(p, stream);
  if (unaligned) return dispatch<Policy, kWide, false>(p, options, stream);
  if (word) return dispatch<Policy, kWord, true>(p, options, stream);
  return dispatch<Policy, 1, true>(p, options, stream);
}

}  // namespace rms_norm::detail
