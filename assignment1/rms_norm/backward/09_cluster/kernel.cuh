// 09_cluster: 08_prefetch in clusters of 8 blocks, which add up their partial sums in each other's shared memory before
// they write a row of them.
//
// It removes seven of eight rows of partial sums, their writing and their reading in the second kernel (counters: bytes
// that loads and stores ask for). The price is two barriers of the cluster at its end. Needs sm_90.
// It leaves: the second kernel, which begins when the last block of the first has ended.
#pragma once

#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"
#include "common/cuda_check.h"

namespace ladder::backward::cluster {

constexpr int kCluster = 8;  // blocks; what every GPU with clusters can do

// partial: a thread's eight columns. The blocks of a cluster leave theirs in shared memory; then each block adds up an
// eighth of the columns over all of them, in the order of the blocks, and writes it to the cluster's row.
template <class T>
__device__ void write_cluster_sums(const Tensors<T>& t, float* own, const Pack<float>& partial) {
#if __CUDA_ARCH__ >= 900
  const auto cluster = cooperative_groups::this_cluster();
  __syncthreads();  // `own` has held rows
  store_pack(own + threadIdx.x * kColumns, partial, true, kColumns);
  cluster.sync();
  const int64_t col = int64_t{cluster.block_rank()} * blockDim.x + threadIdx.x;
  float sum = 0.0f;
  for (unsigned block = 0; block < kCluster; ++block) sum += cluster.map_shared_rank(own, block)[col];
  if (t.dweight != nullptr && col < t.cols) t.partial[blockIdx.x / kCluster * t.cols + col] = sum;
  cluster.sync();  // no block ends while others read its shared memory
#endif
}

template <class T, int kAhead>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t, bool aligned) {
  extern __shared__ uint4 fetched[];
  __shared__ float2 warp_sums[2][32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = t.cols - first;
  const bool vector = aligned && columns > 0;
  auto* own = reinterpret_cast<Pack<T>*>(fetched) + threadIdx.x;
  const unsigned slot = 2 * blockDim.x;  // packs of a row, dy's and x's
  for (int i = 0; i < kAhead; ++i) fetch_ahead(own + i * slot, t, blockIdx.x + int64_t{i} * gridDim.x, first, vector);
  const Pack<float> factor = weight_factors(t, first, vector, columns);
  Pack<float> partial = {};
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
  __pipeline_wait_prior(0);
  cluster::write_cluster_sums(t, reinterpret_cast<float*>(fetched), partial);
}

template <class T, int kAhead>
void launch_with(const Tensors<T>& t, size_t bytes, cudaStream_t stream) {
  auto* kernel = gradients_kernel<T, kAhead>;
  CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)));
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kCluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kCluster);
  config.blockDim = dim3(threads_for(t.cols));
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int most = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveClusters(&most, kernel, &config));
  const auto clusters =
      static_cast<unsigned>(std::min({blocks_for(t.rows, kCluster), int64_t{std::max(most, 1)}, kMostPartials}));
  config.gridDim.x = clusters * kCluster;
  if (clusters > 0) CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, t, takes_vectors(t)));
  if (t.dweight == nullptr) return;
  partial_sums_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kTile)), dim3(kTile, kTile), 0, stream>>>(t, clusters);
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

inline const Stage<RmsNormBackward> stage{
    "09_cluster", "clusters of 8 blocks add up their partial sums", launch, {90, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::cluster
