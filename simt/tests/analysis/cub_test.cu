// What CUB's collectives cost: their accesses to shared memory, barriers and shuffles, all on the line that calls them.
#include "../testing.h"

#include <cub/cub.cuh>

#include <map>

#include "analysis/counters.h"
#include "analysis/hooks.h"

using namespace simt::analysis;

namespace {

template <cub::BlockReduceAlgorithm algorithm, class T>
__global__ void sum_block(const T* in, T* out) {
  using Reduce = cub::BlockReduce<T, 256, algorithm>;
  __shared__ typename Reduce::TempStorage temp;
  const T value = in[threadIdx.x];
  const T sum = Reduce(temp).Sum(value);
  if (threadIdx.x == 0) out[0] = sum;
}
constexpr int kSumLine = __LINE__ - 3;

template <cub::BlockScanAlgorithm algorithm>
__global__ void scan_block(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 256, algorithm>;
  __shared__ typename Scan::TempStorage temp;
  int before;
  Scan(temp).ExclusiveSum(in[threadIdx.x], before);
  out[threadIdx.x] = before;
}

__global__ void load_vectors(const float* in, float* out) {
  using Load = cub::BlockLoad<float, 64, 4, cub::BLOCK_LOAD_VECTORIZE>;
  __shared__ typename Load::TempStorage temp;
  float items[4];
  Load(temp).Load(in, items);
  out[threadIdx.x] = items[0] + items[1] + items[2] + items[3];
}

struct Costs {
  uint64_t loads = 0, load_lanes = 0, stores = 0, store_lanes = 0, barriers = 0, shuffles = 0, reductions = 0;
};
// Of shared memory; barriers of the block, not of each warp.
Costs costs_of_last_kernel() {
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  Costs costs;
  const auto& kernel = *counters().kernels().back();
  for (const auto& [key, site] : kernel.sites) {
    if (site.like.space != Space::shared) continue;
    (site.like.kind == Kind::load ? costs.loads : costs.stores) += site.requests;
    (site.like.kind == Kind::load ? costs.load_lanes : costs.store_lanes) += site.lanes;
  }
  for (const auto& [key, count] : kernel.operations) {
    if (key.second == Operation::block_barrier) costs.barriers += count.calls;
    if (key.second == Operation::shuffle) costs.shuffles += count.calls;
    if (key.second == Operation::warp_reduce) costs.reductions += count.calls;
  }
  return costs;
}

}  // namespace

TEST_CASE("a reduction by warps: five shuffles each, one store each, one barrier, and thread 0 reads the others") {
  Device<float> data(256);
  sum_block<cub::BLOCK_REDUCE_WARP_REDUCTIONS, float><<<1, 256>>>(data.data, data.data);
  const Costs costs = costs_of_last_kernel();
  CHECK(costs.shuffles == 8 * 5);
  CHECK(costs.stores == 8);
  CHECK(costs.store_lanes == 8);
  CHECK(costs.barriers == 8);
  CHECK(costs.loads == 7);
  CHECK(costs.load_lanes == 7);
}

TEST_CASE("sums of int take the instruction that reduces a warp") {
  Device<int> data(256);
  sum_block<cub::BLOCK_REDUCE_WARP_REDUCTIONS, int><<<1, 256>>>(data.data, data.data);
  const Costs costs = costs_of_last_kernel();
  CHECK(costs.shuffles == 0);
  CHECK(costs.reductions == 8);
}

TEST_CASE("a reduction by raking: all values go through shared memory, without bank conflicts") {
  Device<float> data(256);
  sum_block<cub::BLOCK_REDUCE_RAKING><<<1, 256>>>(data.data, data.data);
  Costs costs = costs_of_last_kernel();
  CHECK(costs.store_lanes == 256);
  CHECK(costs.loads == 8);
  CHECK(costs.load_lanes == 256);
  CHECK(costs.shuffles == 5);
  for (const auto& [key, site] : counters().kernels().back()->sites)
    if (site.like.space == Space::shared && site.like.kind == Kind::load) CHECK(site.units == site.ideal);
  sum_block<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY><<<1, 256>>>(data.data, data.data);
  costs = costs_of_last_kernel();
  CHECK(costs.store_lanes == 224);
  CHECK(costs.load_lanes == 224);
}

TEST_CASE("scans") {
  Device<int> data(256);
  scan_block<cub::BLOCK_SCAN_RAKING><<<1, 256>>>(data.data, data.data);
  Costs costs = costs_of_last_kernel();
  CHECK(costs.barriers == 2 * 8);
  CHECK(costs.shuffles == 5);
  scan_block<cub::BLOCK_SCAN_RAKING_MEMOIZE><<<1, 256>>>(data.data, data.data);
  CHECK(costs_of_last_kernel().loads == costs.loads - 8);
  scan_block<cub::BLOCK_SCAN_WARP_SCANS><<<1, 256>>>(data.data, data.data);
  costs = costs_of_last_kernel();
  CHECK(costs.barriers == 8);
  CHECK(costs.shuffles == 8 * 5);
  CHECK(costs.store_lanes == 8);
  CHECK(costs.loads == 8 * 8);
}

TEST_CASE("a vectorized load is one request of 16 bytes per lane") {
  Device<float> data(256);
  load_vectors<<<1, 64>>>(data.data, data.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  uint64_t requests = 0;
  for (const auto& [key, site] : counters().kernels().back()->sites)
    if (site.like.kind == Kind::load && site.like.size == 16) requests += site.requests;
  CHECK(requests == 2);
}
