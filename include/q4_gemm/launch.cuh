// From a product to a launch of a kernel of some shape.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "few_columns.cuh"

namespace q4_gemm::detail {

struct Device {
  int multiprocessors = 0;
  int block_bytes = 0, shared_bytes = 0;  // of shared memory: what a block may have, what a multiprocessor has
  bool has_clusters = false;              // and dependent launches
};
inline cudaError_t query(Device& device) {
  int number = 0, major = 0;
  if (const cudaError_t error = cudaGetDevice(&number)) return error;
  const auto get = [&](int& to, cudaDeviceAttr attribute) { return cudaDeviceGetAttribute(&to, attribute, number); };
  if (const cudaError_t error = get(major, cudaDevAttrComputeCapabilityMajor)) return error;
  device.has_clusters = major >= 9;
  if (const cudaError_t error = get(device.block_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin)) return error;
  if (const cudaError_t error = get(device.shared_bytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor)) return error;
  return get(device.multiprocessors, cudaDevAttrMultiProcessorCount);
}

template <class P>
cudaError_t launch(void (*kernel)(P), const P& p, dim3 grid, int threads, int shared_bytes, int cluster, bool dependent,
                   cudaStream_t stream) {
  if (shared_bytes > (48 << 10))
    if (const cudaError_t error =
            cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes))
      return error;
  cudaLaunchAttribute attributes[2];
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = static_cast<size_t>(shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes[config.numAttrs] = {};
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  if (dependent) next(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  if (cluster > 1) {
    auto& size = next(cudaLaunchAttributeClusterDimension).clusterDim;
    size.x = static_cast<unsigned>(cluster), size.y = 1, size.z = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, p);
}

constexpr int64_t divided_up(int64_t number, int64_t by) { return (number + by - 1) / by; }

// p has everything but chunks, parts, passes and sets. Blocks of a cluster share k.
template <class S, class W, class X, class B, class Y>
cudaError_t launch_few(FewProblem<W, X, B, Y> p, int64_t k, int cluster, const Device& device, cudaStream_t stream) {
  constexpr int kReserved = 1024, kMostTiles = 65535;  // bytes of a block that CUDA keeps; blocks of a grid along y
  p.row_blocks = static_cast<int>(k / kBlock);
  p.chunks = static_cast<int>(chunks_of(k));
  p.cluster = cluster;
  p.part_chunks = static_cast<int>(divided_up(p.chunks, cluster));
  p.sets = static_cast<int>(divided_up(p.m, S::kRows));
  const int columns = static_cast<int>(std::min<int64_t>(p.n, S::kColumns));
  const int one_pass = few_memory<S, W>(columns, S::kPhases, cluster).all;
  const int least = few_memory<S, W>(columns, 0, cluster).all, per_chunk = (one_pass - least) / S::kPhases;
  const int most = (device.block_bytes - least) / per_chunk / S::kPhases * S::kPhases;
  if (most < S::kPhases) return cudaErrorInvalidConfiguration;
  p.pass_chunks = std::min(p.part_chunks, most);

  const int bytes = few_memory<S, W>(columns, p.pass_chunks, cluster).all;
  const int together = std::clamp(device.shared_bytes / (bytes + kReserved), 1, 1024 / S::kThreads);
  const int64_t clusters = std::min<int64_t>(p.sets, std::max(1, device.multiprocessors * together / cluster));
  const int64_t n = p.n, tiles = divided_up(n, S::kColumns);
  if (tiles > kMostTiles) return cudaErrorInvalidConfiguration;
  const dim3 grid(static_cast<unsigned>(clusters * cluster), static_cast<unsigned>(tiles));
  return launch(few_columns<S, W, X, B, Y>, p, grid, S::kThreads, bytes, cluster, p.dependent, stream);
}

}  // namespace q4_gemm::detail
