// 10_let_in_early: 10_dependent_launch whose second kernel lets the next call's first kernel start at once, and not by
// its end.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/10_dependent_launch/kernel.cuh"
#include "common/cuda_check.h"

namespace ladder::backward::controls::let_in_early {

using dependent_launch::gradients_kernel, dependent_launch::let_next_kernel_start,
    dependent_launch::wait_for_previous_kernel;

template <class T>
__global__ void __launch_bounds__(kTile* kTile) dependent_sums_kernel(const Tensors<T> t, int64_t count) {
  wait_for_previous_kernel();
  let_next_kernel_start();
  add_partial_sums(t, count);
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

inline const Stage<RmsNormBackward> stage{"10_let_in_early",
                                          "the second kernel lets the next call in as soon as it may",
                                          launch,
                                          {90, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::controls::let_in_early
