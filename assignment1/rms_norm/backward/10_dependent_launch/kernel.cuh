// 10_dependent_launch: 09_cluster with both kernels launched as dependent ones. Each is brought to the SMs while the
// kernel before it still runs, and waits there for its end.
//
// It removes the start of a kernel from the time between two: of the second kernel after the first, and of the first
// after whatever came before (counters of single kernels do not show it: microseconds of short calls do). While it
// waits the first kernel loads the weight, which the kernel before it must therefore not write. Needs sm_90.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"
#include "common/cuda_check.h"

namespace ladder::backward::dependent_launch {

// Before this call a kernel must not touch what the kernel before it in the stream writes, nor write what that kernel
// still uses.
__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}

// Once every block has called this, the next kernel's blocks may start where there is room.
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// It lets the next kernel start by its end: blocks of the next call that come while these still occupy SMs would be
// spread unevenly, and they stay for many rows.
template <class T>
__global__ void __launch_bounds__(kTile* kTile) dependent_sums_kernel(const Tensors<T> t, int64_t count) {
  wait_for_previous_kernel();
  add_partial_sums(t, count);
}

template <class T, int kAhead>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t, bool aligned) {
  extern __shared__ uint4 fetched[];
  __shared__ float2 warp_sums[2][32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = t.cols - first;
  const bool vector = aligned && columns > 0;
  auto* own = reinterpret_cast<Pack<T>*>(fetched) + threadIdx.x;
  const unsigned slot = 2 * blockDim.x;  // packs of a row, dy's and x's
  const Pack<float> factor = weight_factors(t, first, vector, columns);
  Pack<float> partial = {};
  wait_for_previous_kernel();
  for (int i = 0; i < kAhead; ++i) fetch_ahead(own + i * slot, t, blockIdx.x + int64_t{i} * gridDim.x, first, vector);
  int turn = 0, next = 0;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1, next = (next + 1) % kAhead) {
    const int64_t begin = row * t.cols + first;
    __pipeline_wait_prior(kAhead - 1);
    const Pack<T> dy = vector ? own[next * slot] : load_pack(t.dy + begin, false, columns);
    const Pack<T> x = vector ? own[next * slot + blockDim.x] : load_pack(t.x + begin, false, columns);
    fetch_ahead(own + next * slot, t, row + int64_t{kAhead} * gridDim.x, first, vector);
    const Pack<T> dsum = t.dsum == nullptr ? Pack<T>{} : load_pack(t.dsum + begin, vector, columns);
    const RowFactors row_is = row_factors(t, row, block_sums(sums_of(dy, x, factor), warp_sums[turn]));
    store_pack(t.dx + begin, gradients(dy, x, dsum, factor, row_is, partial), vector, columns);
  }
  let_next_kernel_start();
  __pipeline_wait_prior(0);
  write_cluster_sums(t, reinterpret_cast<float*>(fetched), partial);
}

template <class T, int kAhead>
void launch_with(const Tensors<T>& t, size_t bytes, cudaStream_t stream) {
  auto* kernel = gradients_kernel<T, kAhead>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[0].val.programmaticStreamSerializationAllowed = 1;
  attributes[1].id = cudaLaunchAttributeClusterDimension;
  attributes[1].val.clusterDim.x = kCluster;
  attributes[1].val.clusterDim.y = attributes[1].val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kCluster);
  config.blockDim = dim3(threads_for(t.cols));
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = 2;
  int most = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&most, kernel, &config));
  const auto clusters =
      static_cast<unsigned>(std::min({blocks_for(t.rows, kCluster), int64_t{std::max(most, 1)}, kMostPartials}));
  config.gridDim.x = clusters * kCluster;
  if (clusters > 0) CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, t, takes_vectors(t)));
  if (t.dweight == nullptr) return;
  config.gridDim = dim3(static_cast<unsigned>(blocks_for(t.cols, kTile)));
  config.blockDim = dim3(kTile, kTile);
  config.dynamicSmemBytes = 0;
  config.numAttrs = 1;
  CUDA_CHECK(cudaLaunchKernelEx(&config, dependent_sums_kernel<T>, t, int64_t{clusters}));
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  int device = 0, most = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  dispatch(call.dtype, [&](auto* type) {
    using T = std::decay_t<decltype(*type)>;
    const auto t = tensors_of(call, type);
    const size_t row = 2 * sizeof(Pack<T>) * threads_for(t.cols), room = static_cast<size_t>(most) - 1024;
    if (4 * row <= room)
      launch_with<T, 4>(t, 4 * row, stream);
    else
      launch_with<T, 1>(t, row, stream);
  });
}

inline const Stage<RmsNormBackward> stage{"10_dependent_launch",
                                          "each kernel starts while the one before it ends",
                                          launch,
                                          {90, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::dependent_launch
