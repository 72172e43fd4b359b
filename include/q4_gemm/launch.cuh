// From a product to a launch of a kernel of some shape.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>

#include "arguments.cuh"
#include "few_columns.cuh"
#include "many_columns.cuh"
#include "norm.cuh"
#include "policy.cuh"

namespace q4_gemm::detail {

struct Device {
  int multiprocessors = 0;
  int block_bytes = 0, shared_bytes = 0;  // of shared memory: what a block may have, what a multiprocessor has
  bool has_tensor_cores = false;          // for bytes, 16 rows at a time
  bool has_clusters = false;              // and dependent launches
  bool is_h100 = false;
};
inline cudaError_t query(Device& device) {
  int number = 0, architecture = 0;
  if (const cudaError_t error = cudaGetDevice(&number)) return error;
  if (const cudaError_t error = query_code<CUDA_BITS_ARCHITECTURES>(number, architecture)) return error;
  const auto get = [&](int& to, cudaDeviceAttr attribute) { return cudaDeviceGetAttribute(&to, attribute, number); };
  device.has_tensor_cores = architecture >= 80;
  device.has_clusters = architecture >= 90;
  if (const cudaError_t error = query_h100(number, architecture, device.is_h100)) return error;
  if (const cudaError_t error = get(device.block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin)) return error;
  if (const cudaError_t error = get(device.shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor)) return error;
  return get(device.multiprocessors, cudaDevAttrMultiProcessorCount);
}

// Allows a kernel the dynamic shared memory that a call needs. Calls that need different amounts ask for the same, the
// most that any may need, so that no other thread's call takes it back.
template <class... P>
cudaError_t allow(void (*kernel)(P...), int bytes, int most_bytes) {
  if (bytes <= 48 << 10) return cudaSuccess;  // which every kernel has
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most_bytes);
}

// What launch_few() returns if a block has too little shared memory for a shape; and a shape for which the 99 KB are
// enough that a block has on the smallest GPUs, for any number of columns.
constexpr cudaError_t kTooLarge = cudaErrorInvalidConfiguration;
using LeastShape = FewShape<2, 2, 8, 4, 8, 1, false>;

// p has everything down to n. The blocks of a cluster, a power of two, share k. If batch-invariant, a shape is too
// large where it would be for any number of columns, or for x in another form.
template <class S, class W, class X, class B, class Y>
cudaError_t launch_few(FewProblem<W, X, B, Y> p, int64_t k, int cluster, const Device& device, cudaStream_t stream,
                       bool batch_invariant = false) {
  constexpr int kReserved = 1024, kMostTiles = 65535;  // bytes of a block that CUDA keeps; blocks of a grid along y
  p.row_blocks = static_cast<int>(k / kBlock);
  p.chunks = static_cast<int>(chunks_of(k));
  for (p.cluster_bits = 0; 1 << p.cluster_bits < cluster;) ++p.cluster_bits;
  p.part_chunks = static_cast<int>(divided_up(p.chunks, cluster));
  p.sets = static_cast<int>(divided_up(p.m, S::kRows));
  constexpr int kStep = S::kPhases;  // chunks that a block multiplies at once
  const int columns = static_cast<int>(std::min<int64_t>(p.n, S::kColumns));
  const bool always_fits =
      few_memory<S, Packed, QuantizedColumns>(S::kColumns, kStep, cluster).all <= device.block_bytes &&
      few_memory<S, Packed, Columns<float>>(S::kColumns, kStep, cluster).all <= device.block_bytes;
  if (batch_invariant && !always_fits) return kTooLarge;
  const int least = few_memory<S, W, X>(columns, 0, cluster).all;
  const int per_step = few_memory<S, W, X>(columns, kStep, cluster).all - least;
  const int room = per_step == 0 ? p.part_chunks : std::max(0, device.block_bytes - least) / per_step * kStep;
  p.pass_chunks = std::min(p.part_chunks, room);
  if (least > device.block_bytes || p.pass_chunks < std::min(kStep, p.part_chunks)) return kTooLarge;

  // So much that no more than kTogether blocks fit on a multiprocessor. Otherwise some have blocks of three kernels,
  // and others none.
  const int bytes = std::max(few_memory<S, W, X>(columns, p.pass_chunks, cluster).all,
                             device.shared_bytes / (S::kTogether + 1) - kReserved + 16);
  const int together = std::clamp(device.shared_bytes / (bytes + kReserved), 1, S::kTogether);
  const int64_t clusters = std::min<int64_t>(p.sets, std::max(1, device.multiprocessors * together / cluster));
  const auto kernel = few_columns<S, W, X, B, Y>;
  if (const cudaError_t error = allow(kernel, bytes, device.block_bytes)) return error;
  for (const int64_t n = p.n; p.first_column < n; p.first_column += int64_t{kMostTiles} * S::kColumns) {
    p.n = std::min(n, p.first_column + int64_t{kMostTiles} * S::kColumns);
    const dim3 grid(static_cast<unsigned>(clusters * cluster),
                    static_cast<unsigned>(divided_up(p.n - p.first_column, S::kColumns)));
    const cudaError_t error = launch(stream, {grid, dim3(S::kThreads), bytes, cluster, p.dependent}, kernel, p);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// The weights that a kernel takes, from those that a caller has.
inline Packed weights_of(const Repacked& w, int64_t m, int64_t k) { return {w.data, m, k}; }
inline BlockRows weights_of(const Blocks& w, int64_t m, int64_t k) {
  return {static_cast<const unsigned char*>(w.data), m, k / kBlock};
}

template <class T>
Columns<T> columns_of(const T* data, int64_t n, int64_t size, int64_t stride) {
  stride = stride_of(stride, size);
  return {data, stride, is_aligned(data, 16) && (n <= 1 || is_aligned(data + stride, 16))};
}
template <class T>
Columns<T> x_of(const T* x, int64_t n, int64_t k, int64_t stride) {
  return columns_of(x, n, k, stride);
}
inline QuantizedColumns x_of(const Quantized& x, int64_t n, int64_t k, int64_t) { return {x.data, n, k}; }

// --- Products --------------------------------------------------------------------------------------------------------

// The most numbers of x that every block quantizes by itself, which takes less time than a kernel of its own.
constexpr int64_t kFewNumbers = 8192;
constexpr bool are_quantized_once(int64_t n, int64_t k) { return n > 1 && k > kFewNumbers / n; }

// Up to 16 columns, quantized; or x in tiles of up to 128 columns, as float16, or as int8 with scales, which is less.
constexpr int64_t kLeastManyFrom = 17;  // of a policy
constexpr size_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kMostColumns = 128;
  if (m < 1) return 0;
  if (n < kLeastManyFrom) return are_quantized_once(n, k) ? quantized_size(n, k) : 0;
  return bytes_of(divided_up(n, kMostColumns), padded_chunks(chunks_of(k)),
                  XTile<kMostColumns, Scales::rounded_to_half>::kBytes);
}

template <class X>
cudaError_t launch_quantize(const Columns<X>& x, void* quantized, int64_t n, int64_t k, bool dependent,
                            cudaStream_t stream) {
  constexpr int kThreads = 128;
  const QuantizedColumns to(quantized, n, k);
  const int64_t grid = divided_up(n * to.chunks * (kChunk / 8), kThreads);
  return launch(stream, {dim3(static_cast<unsigned>(grid)), dim3(kThreads), 0, 1, dependent}, quantize_kernel<X>, x, to,
                n, k, dependent);
}

// Whether a row of a table takes the product. A batch-invariant one, whose number of columns does not count, gets what
// the table has for any number.
constexpr bool takes(const FewChoice& c, int64_t m, int64_t n, int64_t k, bool batch_invariant, bool has_clusters) {
  return m <= c.most_m && k <= c.most_k && (c.cluster == 1 || has_clusters) &&
         (batch_invariant ? c.most_columns == kAnySize : n <= c.most_columns);
}

// The first row of a table that takes the product, and for which a multiprocessor has the shared memory. The table is
// known at compile time, so that no kernel is compiled that it does not name.
template <const auto& table, size_t i = 0, class P>
cudaError_t launch_first(const P& p, int64_t k, bool batch_invariant, const Device& device, cudaStream_t stream) {
  if constexpr (i == std::size(table)) {
    return launch_few<LeastShape>(p, k, 1, device, stream, batch_invariant);
  } else {
    constexpr FewChoice c = table[i];
    if (takes(c, p.m, p.n, k, batch_invariant, device.has_clusters)) {
      using S = FewShape<c.tiles, c.warp_tiles, c.phases, c.depth, c.columns, c.together, c.x_in_slots>;
      const cudaError_t error = launch_few<S>(p, k, c.cluster, device, stream, batch_invariant);
      if (error != kTooLarge) return error;
    }
    return launch_first<table, i + 1>(p, k, batch_invariant, device, stream);
  }
}

// x is converted, and the product, whose blocks divide k into `parts` parts, starts while it is. Sets `done` unless the
// GPU has no wgmma, or y too many tiles.
template <class S, class X, class B, class Y>
cudaError_t launch_many(ManyProblem<B, Y> p, const X& x, void* workspace, int parts, int64_t k, bool dependent,
                        cudaStream_t stream, bool& done) {
  constexpr int kMostTiles = 65535;
  const auto kernel = many_columns_kernel<S, B, Y>;
  cudaFuncAttributes attributes;
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, kernel)) return error;
  const int64_t column_tiles = divided_up(p.n, S::kColumns), row_tiles = divided_up(p.w.groups, S::kGroups);
  if (attributes.maxThreadsPerBlock < S::kThreads || column_tiles > kMostTiles || row_tiles > kMostTiles)
    return cudaSuccess;
  done = true;
  p.x = static_cast<const unsigned char*>(workspace);
  const int64_t chunks = padded_chunks(p.w.chunks);
  const dim3 converters(static_cast<unsigned>(divided_up(chunks * kChunkBlocks, kConvertWarps)),
                        static_cast<unsigned>(column_tiles), S::kColumns / 8);
  if (const cudaError_t error = launch(stream, {converters, dim3(32 * kConvertWarps), 0, 1, dependent},
                                       convert_x_kernel<S::kColumns, S::kScales, X>, x,
                                       static_cast<unsigned char*>(workspace), p.n, k, chunks, dependent))
    return error;
  if (const cudaError_t error = allow(kernel, S::kBytes, S::kBytes)) return error;
  const dim3 grid(static_cast<unsigned>(parts), static_cast<unsigned>(column_tiles), static_cast<unsigned>(row_tiles));
  return launch(stream, {grid, dim3(S::kThreads), S::kBytes, parts, /*dependent=*/true}, kernel, p);
}

struct ManyPlan {
  size_t choice;
  int parts;  // of k: 1 to 8
};

// The shape and the parts that need the least time, if each wave of clusters takes as long as one of its blocks.
template <class Policy>
ManyPlan plan_of(int64_t groups, int64_t n, int64_t chunks) {
  ManyPlan best = {};
  float least = INFINITY;
  for (size_t i = 0; i < std::size(Policy::kMany); ++i)
    for (int parts = 1; parts <= 8 && parts <= chunks; ++parts) {
      const ManyChoice& c = Policy::kMany[i];
      const int64_t tiles = divided_up(groups, c.groups) * divided_up(n, c.columns);
      const int64_t waves = divided_up(tiles, Policy::kClusters[c.together - 1][parts - 1]);
      const float of_block = parts > 1 ? c.block + c.share : c.block;
      const float time =
          static_cast<float>(waves) * (static_cast<float>(divided_up(chunks, parts)) * c.chunk + of_block);
      if (time < least) least = time, best = {i, parts};
    }
  return best;
}
template <class Policy, size_t i = 0, class X, class B, class Y>
cudaError_t launch_plan(const ManyPlan& plan, const ManyProblem<B, Y>& p, const X& x, void* workspace, int64_t k,
                        bool dependent, cudaStream_t stream, bool& done) {
  if constexpr (i + 1 < std::size(Policy::kMany))
    if (plan.choice != i) return launch_plan<Policy, i + 1>(plan, p, x, workspace, k, dependent, stream, done);
  constexpr ManyChoice c = Policy::kMany[i];
  using S = ManyShape<c.columns, c.groups, c.ways, Policy::kScales, c.together>;
  return launch_many<S>(p, x, workspace, plan.parts, k, dependent, stream, done);
}

// A call: checked, and launched as the policy says, with as many columns at a time as a grid may have.
template <class Policy, class W, class X, class Y, class B>
cudaError_t run(const W& weights, const X& x, Y* y, int64_t m, int64_t n, int64_t k, const B* bias,
                const Options& options, cudaStream_t stream) {
  static_assert(Policy::kManyFrom >= kLeastManyFrom, "a workspace has no room for fewer columns in tiles");
  if (refusal(weights, x, y, m, n, k, bias, options, workspace_bytes(m, n, k)) != nullptr) return cudaErrorInvalidValue;
  if (m == 0 || n == 0) return cudaSuccess;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  if (!device.has_tensor_cores) return cudaErrorNotSupported;
  const auto columns = x_of(x, n, k, options.x_stride);
  if constexpr (std::is_same_v<W, Repacked>)
    if (options.workspace != nullptr && n >= Policy::kManyFrom && device.has_clusters && !options.batch_invariant) {
      bool done = false;
      const ManyProblem<B, Y> p = {{weights.data, m, k}, nullptr, bias, y, stride_of(options.y_stride, m), m, n};
      const ManyPlan plan = plan_of<Policy>(p.w.groups, n, p.w.chunks);
      const cudaError_t error =
          launch_plan<Policy>(plan, p, columns, options.workspace, k, options.dependent_launch, stream, done);
      if (error != cudaSuccess || done) return error;
    }
  const bool dependent = options.dependent_launch && device.has_clusters;
  const auto few = [&](const auto& of_x, bool waits) {
    using Problem = FewProblem<decltype(weights_of(weights, m, k)), std::decay_t<decltype(of_x)>, B, Y>;
    Problem p = {weights_of(weights, m, k), of_x, bias, y, stride_of(options.y_stride, m), m, n, /*first_column=*/0};
    p.dependent = waits;
    if (device.is_h100) return launch_first<PolicyOfH100<Policy>::kFew>(p, k, options.batch_invariant, device, stream);
    return launch_first<Policy::kFew>(p, k, options.batch_invariant, device, stream);
  };
  // Many numbers are quantized once, by a kernel of its own; one column, or few numbers, by every block.
  if constexpr (std::is_same_v<W, Repacked> && !std::is_same_v<X, Quantized>)
    if (options.workspace != nullptr && are_quantized_once(n, k)) {
      if (const cudaError_t error = launch_quantize(columns, options.workspace, n, k, dependent, stream)) return error;
      return few(QuantizedColumns(options.workspace, n, k), device.has_clusters);
    }
  return few(columns, dependent);
}

// --- Activations -----------------------------------------------------------------------------------------------------

template <class X>
cudaError_t run_quantize(const X* x, void* quantized, int64_t n, int64_t k, const Options& options,
                         cudaStream_t stream) {
  if (refusal_of_quantize(x, quantized, n, k, options.x_stride) != nullptr) return cudaErrorInvalidValue;
  if (n == 0) return cudaSuccess;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  return launch_quantize(columns_of(x, n, k, options.x_stride), quantized, n, k,
                         options.dependent_launch && device.has_clusters, stream);
}

template <class X, class R, class W>
cudaError_t run_norm(const NormCall<X, R>& call, W weight, cudaStream_t stream) {
  if (refusal_of_norm(call, weight) != nullptr) return cudaErrorInvalidValue;
  if (call.n == 0) return cudaSuccess;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  using WE = std::conditional_t<std::is_null_pointer_v<W>, X, std::remove_const_t<std::remove_pointer_t<W>>>;
  const NormOptions& options = call.options;
  NormProblem<X, R, WE> p = {};
  p.x = columns_of(call.x, call.n, call.k, options.x_stride);
  if constexpr (p.kAdds) {
    p.residual = columns_of(call.residual, call.n, call.k, options.residual_stride);
    p.residual_out = columns_of(call.residual_out, call.n, call.k, options.residual_out_stride);
  }
  p.weight = weight;
  p.weight_aligned = is_aligned(p.weight, 16);
  p.to = QuantizedColumns(call.quantized, call.n, call.k);
  p.k = call.k;
  p.eps = options.eps;
  p.weight_offset = options.weight_offset;
  p.dependent = options.dependent_launch && device.has_clusters;
  const auto with = [&](auto kernel, int threads) {
    return launch(stream, {dim3(static_cast<unsigned>(call.n)), dim3(threads), 0, 1, p.dependent}, kernel, p);
  };
  if (call.k <= 8 * 256) return with(rms_norm_quantize_kernel<256, 1, X, R, WE>, 256);
  if (call.k <= 8 * 512) return with(rms_norm_quantize_kernel<512, 1, X, R, WE>, 512);
  return with(rms_norm_quantize_kernel<1024, 2, X, R, WE>, 1024);
}

}  // namespace q4_gemm::detail
