// Few<shapes> and Many<shapes> compile candidates and make them known to the program.
#pragma once
#include <q4_gemm/q4_gemm.cuh>

#include "bench/tune/q4_gemm/candidate.h"

namespace tune {

using q4_gemm::Scales;
template <int tiles, int warp_tiles, int phases, int depth, int columns, int together, bool x_in_slots = false>
using F = q4_gemm::detail::FewShape<tiles, warp_tiles, phases, depth, columns, together, x_in_slots>;
template <int columns, int groups, int ways, int together>
using E = q4_gemm::detail::ManyShape<columns, groups, ways, Scales::exact, together>;
template <int columns, int groups, int ways, int together>
using R = q4_gemm::detail::ManyShape<columns, groups, ways, Scales::rounded_to_half, together>;

template <class S>
cudaError_t launch_few(const Product& product, int parts, cudaStream_t stream) {
  using namespace q4_gemm::detail;
  Device device;
  if (const cudaError_t error = query(device)) return error;
  const auto with = [&](const auto& x) {
    FewProblem<Packed, std::decay_t<decltype(x)>, float, float> p = {{product.packed, product.m, product.k},
                                                                     x,
                                                                     nullptr,
                                                                     product.y,
                                                                     product.m,
                                                                     product.m,
                                                                     product.n,
                                                                     /*first_column=*/0};
    p.dependent = device.has_clusters;
    return q4_gemm::detail::launch_few<S>(p, product.k, parts, device, stream);
  };
  const Columns<float> x = columns_of(product.x, product.n, product.k, product.k);
  if constexpr (S::kColumns > 1)
    if (are_quantized_once(product.n, product.k)) {
      if (const cudaError_t error =
              launch_quantize(x, product.workspace, product.n, product.k, device.has_clusters, stream))
        return error;
      return with(QuantizedColumns(product.workspace, product.n, product.k));
    }
  return with(x);
}

template <class S>
cudaError_t launch_many(const Product& product, int parts, cudaStream_t stream) {
  using namespace q4_gemm::detail;
  const ManyProblem<float, float> p = {
      {product.packed, product.m, product.k}, nullptr, nullptr, product.y, product.m, product.m, product.n};
  bool done = false;
  const cudaError_t error = q4_gemm::detail::launch_many<S>(p, columns_of(product.x, product.n, product.k, product.k),
                                                            product.workspace, parts, product.k, true, stream, done);
  return error != cudaSuccess || done ? error : cudaErrorNotSupported;
}

inline int none(int) { return 0; }

// Of an H200: 227 KB of shared memory for a block. Sums of more blocks need more.
template <class S>
int most_parts() {
  using namespace q4_gemm::detail;
  int parts = kMostParts;
  while (few_memory<S, Packed, QuantizedColumns>(S::kColumns, S::kPhases, parts).all > 227 << 10) parts /= 2;
  return parts;
}

template <class S>
int clusters_of(int parts) {
  using namespace q4_gemm::detail;
  const auto kernel = many_columns_kernel<S, float, float>;
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = static_cast<unsigned>(parts);
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(parts));
  config.blockDim = dim3(S::kThreads);
  config.dynamicSmemBytes = S::kBytes;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kBytes) != cudaSuccess ||
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess)
    static_cast<void>(cudaGetLastError());  // of a GPU without clusters; then there are none
  return clusters;
}

template <class... S>
struct Few {
  Few() {
    (candidates().push_back({Table::few, S::kColumns, S::kTiles, S::kWarpTiles, 0, S::kPhases, 0, S::kDepth,
                             S::kTogether, S::kXInSlots, most_parts<S>(), launch_few<S>, none}),
     ...);
  }
};

template <class... S>
struct Many {
  Many() {
    (candidates().push_back({S::kScales == Scales::exact ? Table::exact : Table::rounded, S::kColumns, 0, 0, S::kGroups,
                             0, S::kWays, 0, S::kBlocksPerSm, false, kMostParts, launch_many<S>, clusters_of<S>}),
     ...);
  }
};

}  // namespace tune
