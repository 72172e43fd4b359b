// From a problem, whose arguments were checked, to a kernel: a shape is chosen, and launched.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#include "kernels.cuh"
#include "policy.cuh"

namespace rms_norm::detail {

constexpr int kMostHeads = 65535;                              // of a grid
constexpr int kLongPacks = 4 * kMostThreads / 2 * kMostParts;  // that a cluster of half as large blocks holds
constexpr int64_t kSplitBytes = 64 << 10;  // of x: from here on a row is long enough for many blocks

// --- Launches --------------------------------------------------------------------------------------------------------

struct Device {
  int multiprocessors = 0;
  bool has_clusters = false;  // and dependent launches
};
inline cudaError_t query(Device& device) {
  int number = 0, major = 0;
  if (const cudaError_t error = cudaGetDevice(&number)) return error;
  if (const cudaError_t error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, number)) return error;
  device.has_clusters = major >= 9;
  return cudaDeviceGetAttribute(&device.multiprocessors, cudaDevAttrMultiProcessorCount, number);
}

struct Grid {
  int64_t blocks;
  unsigned heads;
  dim3 threads;
  int cluster = 1;
  bool all_at_once = false;
};
template <class P, class... Parameters>
cudaError_t launch(cudaStream_t stream, const Grid& grid, void (*kernel)(P, Parameters...), const P& p,
                   Parameters... parameters) {
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(grid.blocks), grid.heads);
  config.blockDim = grid.threads;
  config.stream = stream;
  config.attrs = attributes;
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes[config.numAttrs] = {};
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  if (p.dependent) next(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  if (grid.all_at_once) next(cudaLaunchAttributeCooperative).cooperative = 1;
  if (grid.cluster > 1) {
    auto& size = next(cudaLaunchAttributeClusterDimension).clusterDim;
    size.x = grid.cluster, size.y = 1, size.z = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, p, parameters...);
}

// start() for as many rows of a head at a time as a grid may have, most often all of them: the problem is what is left.
template <class P, class Start>
cudaError_t in_grids(P& p, int64_t most_rows, Start start) {
  for (int64_t left = p.rows; left > 0; left -= most_rows) {
    p.rows = std::min(left, most_rows);
    if (const cudaError_t error = start()) return error;
    p.x += p.rows * p.x_steps.row, p.y += p.rows * p.y_steps.row;
    if constexpr (P::kAdds) {
      p.residual += p.rows * p.residual_steps.row;
      p.residual_out += p.rows * p.residual_out_steps.row;
    }
  }
  return cudaSuccess;
}

template <int N, int kVectors, int kRowThreads, Traffic traffic, class X, class R, class W, class Y>
cudaError_t launch_in_registers(Problem<X, R, W, Y> p, int block, cudaStream_t stream) {
  constexpr bool kOneRow = traffic == Traffic::few && kRowThreads > 32;
  constexpr int kLeast = traffic == Traffic::unaligned ? 16 : 1;  // the elements at a row's ends
  p.packs = static_cast<int>(p.cols / N);
  int threads = (p.packs + kVectors - 1) / kVectors;
  if (kRowThreads > 32)
    threads = kOneRow ? kRowThreads : std::max(64, (threads + 31) / 32 * 32);
  else
    for (threads = std::max(threads, kLeast); threads & (threads - 1);) ++threads;  // the next power of two
  const int rows = kOneRow ? 1 : std::max(1, block / threads);
  return in_grids(p, INT32_MAX, [&] {
    const Grid grid{(p.rows + rows - 1) / rows, p.heads, dim3(threads, rows)};
    return launch(stream, grid, row_in_registers<N, kVectors, kRowThreads, traffic, X, R, W, Y>, p);
  });
}

// Of a row of so many packs, each part but the last.
constexpr int64_t part_packs(int64_t packs, int parts) { return (packs + parts - 1) / parts; }

template <int N, int kVectors, int kBlock, int kParts, bool kWhole, Traffic traffic, class X, class R, class W, class Y>
cudaError_t launch_in_cluster(Problem<X, R, W, Y> p, cudaStream_t stream) {
  return in_grids(p, INT32_MAX / kParts, [&] {
    const Grid grid{p.rows * kParts, p.heads, dim3(kBlock), kParts};
    const auto kernel = row_in_parts<N, kVectors, kBlock, kParts, kWhole, traffic, ClusterExchange, X, R, W, Y>;
    return launch(stream, grid, kernel, p, part_packs(p.cols / N, kParts), kParts);
  });
}

template <int N, int kVectors, int kBlock, Traffic traffic, class X, class R, class W, class Y>
cudaError_t launch_across_gpu(const Problem<X, R, W, Y>& p, int parts, cudaStream_t stream) {
  const Grid grid{p.rows * parts, 1, dim3(kBlock), 1, true};
  const auto kernel = row_in_parts<N, kVectors, kBlock, 0, false, traffic, MemoryExchange, X, R, W, Y>;
  return launch(stream, grid, kernel, p, part_packs(p.cols / N, parts), parts);
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
  if (shape.parts > 1) return shape.parts <= kMostParts && shape.block >= 256 && shape.traffic != Traffic::few;
  if (threads <= 32) return shape.block <= 256;
  return shape.traffic != Traffic::few || shape.block >= std::max(128, threads);
}

// The threads that its kernel is compiled for: at most so many of a row, or of a block that parts of a row have.
constexpr int kernel_threads(const Shape& shape) {
  const int threads = row_threads(shape);
  if (shape.parts > 1) return shape.block;
  if (threads <= 32) return 32;
  if (shape.traffic == Traffic::few) return shape.block;
  const int most = std::max(threads, shape.block);
  return most <= 256 ? 256 : most <= 512 && shape.vectors >= 8 ? 512 : kMostThreads;  // more packs, more registers
}

template <int N, int kPacks, int kVectors, int kBlock, int kParts, Traffic traffic, class P>
cudaError_t launch_shape(const P& p, cudaStream_t stream) {
  constexpr Shape shape = {kPacks, kAnySize, kVectors, kBlock, kParts, traffic};
  static_assert(is_possible(shape), "no kernel has this shape");
  if constexpr (kParts > 1)
    return launch_in_cluster<N, kVectors, kBlock, kParts, true, traffic>(p, stream);
  else
    return launch_in_registers<N, kVectors, kernel_threads(shape), traffic>(p, kBlock, stream);
}

template <class P>
bool is_contiguous(const P& p) {
  const auto is = [&](const Steps& steps) { return steps.row == p.cols || p.rows == 1; };
  return p.heads == 1 && is(p.x_steps) && is(p.y_steps) &&
         (!P::kAdds || (is(p.residual_steps) && is(p.residual_out_steps)));
}

// Packs of fewer bytes, for tensors that are not aligned alike: then a row is a block's, however long.
template <int N, class P>
constexpr bool is_narrow = N * sizeof(*std::declval<P>().x) < 8;

// The first shape of a table that takes the problem; behind the last, a cluster that holds a row, or blocks that do
// not. The table is known at compile time, so that no kernel is compiled that it does not name.
template <const auto& shapes, int N, Traffic longer, size_t i = 0, class P>
cudaError_t launch_first(const P& p, int64_t bytes, const Device& device, cudaStream_t stream) {
  if constexpr (i < std::size(shapes)) {
    constexpr Shape shape = shapes[i];
    const bool fits = p.cols / N <= shape.packs && bytes <= shape.kilobytes * int64_t{1024};
    const bool possible =
        (shape.traffic != Traffic::few || is_contiguous(p)) && (shape.parts == 1 || device.has_clusters);
    if (!fits || !possible) return launch_first<shapes, N, longer, i + 1>(p, bytes, device, stream);
    return launch_shape<N, shape.packs, shape.vectors, shape.block, shape.parts, shape.traffic>(p, stream);
  } else if constexpr (is_narrow<N, P>) {
    return launch_in_cluster<N, 4, kMostThreads, 1, false, longer>(p, stream);
  } else {
    if (!device.has_clusters) return launch_in_cluster<N, 4, kMostThreads, 1, false, longer>(p, stream);
    if (p.cols / N > kLongPacks) return launch_in_cluster<N, 4, kMostThreads, kMostParts, false, longer>(p, stream);
    return launch_in_cluster<N, 4, kMostThreads / 2, kMostParts, true, longer>(p, stream);
  }
}

// N elements a pack: as many as 16 bytes hold, or fewer.
template <int N, bool kAligned, class X, class R, class W, class Y>
cudaError_t dispatch(Problem<X, R, W, Y> p, cudaStream_t stream) {
  constexpr Traffic longer = kAligned ? Traffic::hold : Traffic::unaligned;
  constexpr int64_t kResidual = sizeof(std::conditional_t<p.kAdds, R, char>) * 2 * p.kAdds;
  const int64_t rows = p.rows * p.heads, bytes = rows * p.cols * (sizeof(X) + sizeof(Y) + kResidual);
  Device device;
  if (const cudaError_t error = query(device)) return error;
  p.dependent = p.dependent && device.has_clusters && bytes <= kDependentKilobytes * int64_t{1024};

  if constexpr (!is_narrow<N, Problem<X, R, W, Y>>) {
    const int together = std::min(kSplitBlocks, device.multiprocessors);
    if (p.workspace != nullptr && p.cols * static_cast<int64_t>(sizeof(X)) >= kSplitBytes && 2 * rows <= together &&
        p.heads == 1) {
      const int parts = static_cast<int>(together / rows);
      if (p.cols / N <= parts * 4 * 256) return launch_across_gpu<N, 4, 256, longer>(p, parts, stream);
      return launch_across_gpu<N, 4, kMostThreads, longer>(p, parts, stream);
    }
  }
  if constexpr (!kAligned)
    return launch_first<kUnaligned, N, longer>(p, bytes, device, stream);
  else if constexpr (is_narrow<N, Problem<X, R, W, Y>>)
    return launch_first<kNarrow, N, longer>(p, bytes, device, stream);
  else if constexpr (std::is_void_v<R>)
    return launch_first<kForward, N, longer>(p, bytes, device, stream);
  else
    return launch_first<kForwardAdd, N, longer>(p, bytes, device, stream);
}

}  // namespace rms_norm::detail
