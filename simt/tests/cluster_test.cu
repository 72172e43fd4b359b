// Thread-block clusters: positions, barriers, and each other's shared memory.
#include "testing.h"

#include <cooperative_groups.h>

#include <numeric>

namespace cg = cooperative_groups;

template <class... Parameters, class... Arguments>
cudaError_t launch(dim3 grid, dim3 block, dim3 cluster, size_t shared, void (*kernel)(Parameters...),
                   Arguments... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster.x;
  attribute.val.clusterDim.y = cluster.y;
  attribute.val.clusterDim.z = cluster.z;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// --- Positions -----------------------------------------------------------------------------------------------------

__global__ void positions(int* wrong) {
  auto cluster = cg::this_cluster();
  const dim3 in_cluster(blockIdx.x % 2, blockIdx.y % 1, blockIdx.z % 3);
  const unsigned rank = in_cluster.x + 2 * in_cluster.z, thread = threadIdx.x + 4 * threadIdx.y;
  const auto differ = [](dim3 a, dim3 b) { return a.x != b.x || a.y != b.y || a.z != b.z; };
  if (differ(cluster.dim_blocks(), dim3(2, 1, 3)) || cluster.num_blocks() != 6) wrong[0] = 1;
  if (differ(cluster.block_index(), in_cluster) || cluster.block_rank() != rank) wrong[1] = 1;
  if (differ(cluster.dim_threads(), dim3(8, 8, 3)) || cluster.num_threads() != 192 || cluster.size() != 192)
    wrong[2] = 1;
  if (cluster.thread_rank() != 32 * rank + thread) wrong[3] = 1;
  if (differ(cluster.thread_index(), dim3(4 * in_cluster.x + threadIdx.x, threadIdx.y, in_cluster.z))) wrong[4] = 1;
  auto grid = cg::this_grid();
  if (differ(grid.dim_clusters(), dim3(2, 2, 2)) || grid.num_clusters() != 8) wrong[5] = 1;
  if (differ(grid.cluster_index(), dim3(blockIdx.x / 2, blockIdx.y, blockIdx.z / 3))) wrong[6] = 1;
  if (grid.cluster_rank() != blockIdx.x / 2 + 2 * (blockIdx.y + 2 * (blockIdx.z / 3))) wrong[7] = 1;
}

TEST_CASE("blocks know their place in the cluster") {
  Device<int> wrong(8);
  CHECK(launch(dim3(4, 2, 6), dim3(4, 8), dim3(2, 1, 3), 0, positions, wrong.data) == cudaSuccess);
  CHECK(wrong.host() == std::vector<int>(8, 0));
}

__global__ void alone(int* out) {
  auto cluster = cg::this_cluster();
  __shared__ int s;
  s = 5;
  cluster.sync();
  out[0] = int(cluster.num_blocks());
  out[1] = int(cluster.block_rank());
  out[2] = *cluster.map_shared_rank(&s, 0);
}

TEST_CASE("without cluster dimensions a block is its own cluster") {
  Device<int> out(3);
  alone<<<2, 32>>>(out.data);
  CHECK(out.host() == std::vector<int>{1, 0, 5});
}

// --- Distributed shared memory -------------------------------------------------------------------------------------

__global__ void __cluster_dims__(4, 1, 1) ring(int* out, int rounds) {
  auto cluster = cg::this_cluster();
  __shared__ int s[2][32];
  const int t = int(threadIdx.x), rank = int(cluster.block_rank());
  s[0][t] = 100 * int(blockIdx.x) + t;
  for (int round = 0; round < rounds; ++round) {
    cluster.sync();
    const int* next = cluster.map_shared_rank(s[round % 2], (rank + 1) % 4);
    s[(round + 1) % 2][t] = next[(t + 1) % 32];
  }
  out[blockIdx.x * 32 + threadIdx.x] = s[rounds % 2][t];
  cluster.sync();
}

TEST_CASE("blocks read their neighbour's shared memory") {
  Device<int> out(8 * 32);
  ring<<<8, 32>>>(out.data, 7);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (int i = 0; i < 256; ++i) {
    const int block = i / 32, from = block / 4 * 4 + (block + 7) % 4;
    CHECK(out.host()[size_t(i)] == 100 * from + (i + 7) % 32);
  }
}

// The histogram of CUDA's guide: the bins are spread over the cluster's blocks.
__global__ void histogram(int* bins, int nbins, int bins_per_block, const int* in, int n) {
  extern __shared__ int s[];
  auto cluster = cg::this_cluster();
  const int stride = int(gridDim.x * blockDim.x);
  for (int i = int(threadIdx.x); i < bins_per_block; i += int(blockDim.x)) s[i] = 0;
  cluster.sync();
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += stride) {
    const int bin = in[i] < 0 ? 0 : in[i] >= nbins ? nbins - 1 : in[i];
    int* there = cluster.map_shared_rank(s, bin / bins_per_block);
    atomicAdd(there + bin % bins_per_block, 1);
  }
  cluster.sync();
  int* local = bins + cluster.block_rank() * unsigned(bins_per_block);
  for (int i = int(threadIdx.x); i < bins_per_block; i += int(blockDim.x)) atomicAdd(&local[i], s[i]);
}

TEST_CASE("a histogram in distributed shared memory") {
  constexpr int kBins = 1000, kClusterSize = 4;
  std::vector<int> in(20000), expected(kBins);
  for (size_t i = 0; i < in.size(); ++i) ++expected[size_t(in[i] = int(i * i % 997))];
  Device<int> device_in(in), bins(kBins);
  CHECK(launch(dim3(8), dim3(96), dim3(kClusterSize), kBins / kClusterSize * sizeof(int), histogram, bins.data, kBins,
               kBins / kClusterSize, static_cast<const int*>(device_in.data), int(in.size())) == cudaSuccess);
  CHECK(bins.host() == expected);
}

__global__ void __cluster_dims__(2, 1, 1) arrive_and_wait(int* out) {
  auto cluster = cg::this_cluster();
  __shared__ int s, other;
  if (threadIdx.x == 0) s = 7 + int(cluster.block_rank());
  cluster.barrier_arrive();
  const int work = int(threadIdx.x);
  cluster.barrier_wait();
  other = *cluster.map_shared_rank(&s, int(1 - cluster.block_rank()));
  if (cluster.query_shared_rank(&s) != cluster.block_rank()) out[2] = 1;
  if (cluster.query_shared_rank(cluster.map_shared_rank(&s, 1)) != 1) out[3] = 1;
  if (!__isShared(&s) || __isShared(cluster.map_shared_rank(&s, int(1 - cluster.block_rank())))) out[4] = 1;
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(std::move(token));
  if (work == 31) out[cluster.block_rank()] = other;
}

TEST_CASE("a cluster barrier in two halves") {
  Device<int> out(5);
  arrive_and_wait<<<2, 32>>>(out.data);
  CHECK(out.host() == std::vector<int>{8, 7, 0, 0, 0});
}

// Each block writes into the others' shared memory: a sum over the cluster in every block.
__global__ void __cluster_dims__(8, 1, 1) all_reduce(const float* in, float* out) {
  auto cluster = cg::this_cluster();
  __shared__ float sums[8];
  float sum = in[blockIdx.x * 32 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  cluster.sync();
  if (threadIdx.x < 8) *cluster.map_shared_rank(&sums[cluster.block_rank()], int(threadIdx.x)) = sum;
  cluster.sync();
  float total = 0;
  for (int i = 0; i < 8; ++i) total += sums[i];
  out[blockIdx.x * 32 + threadIdx.x] = total;
}

TEST_CASE("blocks write into the shared memory of a cluster of eight") {
  std::vector<float> in(16 * 32);
  std::iota(in.begin(), in.end(), 0.0f);
  Device<float> device_in(in), out(in.size());
  all_reduce<<<16, 32>>>(device_in.data, out.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (size_t i = 0; i < in.size(); ++i) {
    const auto first = in.begin() + long(i / 256 * 256);
    CHECK(out.host()[i] == std::accumulate(first, first + 256, 0.0f));
  }
}

__global__ void dependent_launch(int* out) {
  cudaGridDependencySynchronize();
  atomicAdd(out, 1);
  cudaTriggerProgrammaticLaunchCompletion();
}

TEST_CASE("programmatic dependent launch has its device functions") {
  Device<int> out(1);
  dependent_launch<<<2, 32>>>(out.data);
  CHECK(out.host()[0] == 64);
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kBarrierLine = __LINE__ + 2;
__global__ void __cluster_dims__(2, 1, 1) one_block_leaves() {
  if (blockIdx.x == 0) cg::this_cluster().sync();
}
// Of block 0, half the threads leave at once and a quarter between the halves of the barrier; block 1 leaves at its
// end.
__global__ void __cluster_dims__(2, 1, 1) threads_leave(int* out) {
  auto cluster = cg::this_cluster();
  const unsigned t = threadIdx.x;
  if (blockIdx.x == 0 && t < 16) return;
  cluster.barrier_arrive();
  if (blockIdx.x == 0 && t < 24) return;
  cluster.barrier_wait();
  for (int round = 0; round < 3; ++round) {
    if (blockIdx.x == 0 && t < 25 + unsigned(round)) return;
    cluster.sync();
  }
  out[blockIdx.x * 32 + t] = 1;
}
__global__ void grid_barrier_of_some(int* out) {
  if (threadIdx.x == 0) return;
  cg::this_grid().sync();
  *out = 1;
}
__global__ void __cluster_dims__(2, 1, 1) rank_too_large(int* out) {
  __shared__ int s;
  *out = *cg::this_cluster().map_shared_rank(&s, 2);
}
__global__ void __cluster_dims__(2, 1, 1) block_ends_too_early(int* out) {
  __shared__ int s;
  s = int(threadIdx.x);
  cg::this_cluster().sync();
  *out = *cg::this_cluster().map_shared_rank(&s, 1 - blockIdx.x);
}

TEST_CASE("a cluster barrier waits for the threads that have not exited, if SIMT_EXITED says so, as on a GPU") {
  Environment volta("SIMT_EXITED", "arrive");
  one_block_leaves<<<2, 32>>>();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  Device<int> out(4 * 32);
  threads_leave<<<4, 32>>>(out.data);
  for (int i = 0; i < 4 * 32; ++i) CHECK(out.host()[size_t(i)] == (i >= 27));
}

TEST_CASE("a grid barrier waits for all threads, and nothing else is promised") {
  for (const char* exited : {"arrive", static_cast<const char*>(nullptr)}) {
    Environment volta("SIMT_EXITED", exited);
    const std::string text = fault_of(cudaErrorLaunchFailure, [] {
      int* out;
      CHECK(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
      void* arguments[] = {&out};
      cudaLaunchCooperativeKernel((void*)grid_barrier_of_some, dim3(2), dim3(32), arguments, 0, nullptr);
    });
    CHECK(contains(text, "62 threads wait at the grid barrier"));
    CHECK(text.find("SIMT_EXITED") == std::string::npos);
  }
}

TEST_CASE("faults in clusters") {
  std::string text = fault_of(cudaErrorLaunchFailure, [] { one_block_leaves<<<2, 32>>>(); });
  CHECK(contains(text, at_line(__FILE__, kBarrierLine)));
  CHECK(contains(text, "SIMT_EXITED=arrive"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int* out;
    CHECK(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
    rank_too_large<<<2, 32>>>(out);
  });
  CHECK(contains(text, "rank"));
  text = fault_of(cudaErrorIllegalAddress, [] {
    int* out;
    CHECK(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
    block_ends_too_early<<<2, 32>>>(out);
  });
  CHECK(contains(text, "of the cluster has ended"));
  CHECK(launch(dim3(3), dim3(32), dim3(2), 0, alone, static_cast<int*>(nullptr)) != cudaSuccess);
  CHECK(cudaGetLastError() != cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
}
#endif
