// Cooperative groups: blocks, tiles of every size, coalesced threads, partitions, collectives, copies, grids.
#include "testing.h"

#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cuda/barrier>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cg = cooperative_groups;

// --- Blocks --------------------------------------------------------------------------------------------------------

__global__ void block_facts(int* out) {
  cg::thread_block block = cg::this_thread_block();
  const int rank = int(block.thread_rank());
  __shared__ int s[24];
  s[rank] = rank;
  block.sync();
  if (s[23 - rank] != 23 - rank) out[0] = 1;
  cg::sync(block);
  if (block.size() != 24 || block.num_threads() != 24 || cg::group_size(block) != 24) out[1] = 1;
  if (block.group_index().y != blockIdx.y || block.thread_index().z != threadIdx.z) out[2] = 1;
  if (block.group_dim().x != 4 || block.dim_threads().y != 3 || block.dim_threads().z != 2) out[3] = 1;
  if (rank != int(threadIdx.x + 4 * (threadIdx.y + 3 * threadIdx.z))) out[4] = 1;
  auto token = block.barrier_arrive();
  block.barrier_wait(std::move(token));
  if (cg::this_thread().size() != 1 || cg::this_thread().thread_rank() != 0) out[5] = 1;
}

TEST_CASE("a block knows its threads") {
  Device<int> wrong(6);
  block_facts<<<dim3(2, 3), dim3(4, 3, 2)>>>(wrong.data);
  CHECK(wrong.host() == std::vector<int>(6, 0));
}

// A function that takes any group, as in NVIDIA's introduction.
__device__ int sum_of(cg::thread_group group, int* memory, int value) {
  const int lane = int(group.thread_rank());
  for (int half = int(group.size()) / 2; half > 0; half /= 2) {
    memory[lane] = value;
    group.sync();
    if (lane < half) value += memory[lane + half];
    group.sync();
  }
  return value;
}

__global__ void sums_of_groups(int* out) {
  __shared__ int memory[128];
  cg::thread_block block = cg::this_thread_block();
  const int t = int(threadIdx.x);
  const int whole = sum_of(block, memory, t);
  block.sync();
  cg::thread_group tile = cg::tiled_partition(block, 8);
  const int eights = sum_of(tile, memory + t / 8 * 8, t);
  block.sync();
  const cg::thread_group fours = cg::tiled_partition(tile, 4);
  const int of_four = sum_of(fours, memory + t / 4 * 4, t);
  block.sync();
  const int warp = sum_of(cg::tiled_partition<32>(block), memory + t / 32 * 32, t);
  if (t == 0) out[0] = whole;
  if (t % 8 == 0) out[1 + t / 8] = eights;
  if (t % 4 == 0) out[17 + t / 4] = of_four;
  if (t % 32 == 0) out[49 + t / 32] = warp;
}

int sum_range(int first, int count) { return count * first + count * (count - 1) / 2; }

TEST_CASE("every group is a thread_group") {
  Device<int> out(53);
  sums_of_groups<<<1, 128>>>(out.data);
  const auto got = out.host();
  CHECK(got[0] == sum_range(0, 128));
  for (int i = 0; i < 16; ++i) CHECK(got[size_t(1 + i)] == sum_range(8 * i, 8));
  for (int i = 0; i < 32; ++i) CHECK(got[size_t(17 + i)] == sum_range(4 * i, 4));
  for (int i = 0; i < 4; ++i) CHECK(got[size_t(49 + i)] == sum_range(32 * i, 32));
}

// --- Tiles ---------------------------------------------------------------------------------------------------------

struct TileFacts {
  unsigned rank, size, meta_rank, meta_size, ballot, any, all, match_any, match_all;
  int shfl, up, down, butterfly, equal;
};

template <unsigned Size>
__global__ void tile_facts(TileFacts* out) {
  const auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
  const int t = int(threadIdx.x);
  TileFacts f;
  f.rank = tile.thread_rank();
  f.size = tile.size();
  f.meta_rank = tile.meta_group_rank();
  f.meta_size = tile.meta_group_size();
  f.ballot = tile.ballot(t % 3 == 0);
  f.any = unsigned(tile.any(t == 5));
  f.all = unsigned(tile.all(t >= 16));
  f.match_any = tile.match_any(t % 2);
  f.match_all = tile.match_all(t / 16, f.equal);
  f.shfl = tile.shfl(t, 1);
  f.up = tile.shfl_up(t, 1);
  f.down = tile.shfl_down(t, 1);
  f.butterfly = tile.shfl_xor(t, Size / 2);
  tile.sync();
  out[t] = f;
}

template <unsigned Size>
void check_tile() {
  CAPTURE(Size);
  Device<TileFacts> out(96);
  tile_facts<Size><<<1, 96>>>(out.data);
  const auto facts = out.host();
  for (unsigned t = 0; t < 96; ++t) {
    const unsigned first = t / Size * Size, rank = t - first;
    unsigned thirds = 0, same_parity = 0, all = 0;
    for (unsigned r = 0; r < Size; ++r) {
      thirds |= unsigned((first + r) % 3 == 0) << r;
      same_parity |= unsigned((first + r) % 2 == t % 2) << r;
      all |= 1u << r;
    }
    const TileFacts& f = facts[t];
    CHECK(f.rank == rank);
    CHECK(f.size == Size);
    CHECK(f.meta_rank == t / Size);
    CHECK(f.meta_size == 96 / Size);
    CHECK(f.ballot == thirds);
    CHECK((f.any != 0) == (first <= 5 && 5 < first + Size));
    CHECK((f.all != 0) == (first >= 16));
    CHECK(f.match_any == same_parity);
    CHECK(f.match_all == (Size == 32 ? 0 : all));
    CHECK(f.equal == (Size != 32));
    CHECK(f.shfl == int(first + 1 % Size));
    CHECK(f.up == int(rank >= 1 ? t - 1 : t));
    CHECK(f.down == int(rank + 1 < Size ? t + 1 : t));
    CHECK(f.butterfly == int(t ^ Size / 2));
  }
}

TEST_CASE("tiles of up to a warp") {
  check_tile<1>();
  check_tile<2>();
  check_tile<4>();
  check_tile<8>();
  check_tile<16>();
  check_tile<32>();
}

struct Wide {
  double a;
  int b[4];
};

__global__ void nested_tiles(int* wrong) {
  const int t = int(threadIdx.x);
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto quad = cg::tiled_partition<4>(warp);
  static_assert(std::is_same_v<decltype(quad), cg::thread_block_tile<4, cg::thread_block_tile<32, cg::thread_block>>>);
  cg::thread_block_tile<4> erased = quad;
  if (quad.meta_group_rank() != unsigned(t % 32 / 4) || quad.meta_group_size() != 8) wrong[0] = 1;
  if (erased.meta_group_rank() != unsigned(t % 32 / 4) || erased.shfl(t, 3) != t / 4 * 4 + 3) wrong[1] = 1;
  const Wide mine = {0.5 * t, {t, t + 1, t + 2, t + 3}};
  const Wide theirs = warp.shfl_xor(mine, 9);
  if (theirs.a != 0.5 * (t ^ 9) || theirs.b[3] != (t ^ 9) + 3) wrong[2] = 1;
  if (__half2float(quad.shfl(__float2half(float(t)), 2)) != float(t / 4 * 4 + 2)) wrong[3] = 1;
  // Tiles of one warp go different ways.
  int value = t;
  if (quad.meta_group_rank() % 2) {
    value = quad.shfl_down(value, 1);
    value += quad.shfl(value, 0);
  }
  const int expected = t / 4 % 2 ? (t % 4 < 3 ? t + 1 : t) + t / 4 * 4 + 1 : t;
  if (value != expected) wrong[4] = 1;
}

TEST_CASE("tiles of tiles, of wide values, on separate ways") {
  Device<int> wrong(5);
  nested_tiles<<<2, 64>>>(wrong.data);
  CHECK(wrong.host() == std::vector<int>(5, 0));
}

template <unsigned Size>
__global__ void large_tiles(int* wrong, int rounds) {
  __shared__ cg::block_tile_memory<512> memory;
  auto block = cg::this_thread_block(memory);
  auto tile = cg::tiled_partition<Size>(block);
  __shared__ int s[512];
  const int t = int(threadIdx.x), first = t / int(Size) * int(Size);
  if (tile.thread_rank() != unsigned(t - first) || tile.num_threads() != Size) wrong[0] = 1;
  if (tile.meta_group_rank() != unsigned(t) / Size || tile.meta_group_size() != 512 / Size) wrong[1] = 1;
  // Tiles take different numbers of rounds.
  for (int round = 0; round < rounds + first / 32; ++round) {
    s[t] = t + round;
    tile.sync();
    const int rank = t - first, next = first + (rank + 33) % int(Size);
    if (s[next] != next + round) wrong[2] = 1;
    tile.sync();
  }
  if (tile.shfl(3 * t, Size - 2) != 3 * (first + int(Size) - 2)) wrong[3] = 1;
  if (bool(tile.any(t == 70)) != (first <= 70 && 70 < first + int(Size))) wrong[4] = 1;
  if (bool(tile.all(t >= 128)) != (first >= 128)) wrong[5] = 1;
  const int sum = cg::reduce(tile, t, cg::plus<int>());
  if (sum != int(Size) * first + int(Size * (Size - 1) / 2)) wrong[6] = 1;
  if (cg::inclusive_scan(tile, 1) != t - first + 1 || cg::exclusive_scan(tile, 2) != 2 * (t - first)) wrong[7] = 1;
}

TEST_CASE("tiles of several warps") {
  Device<int> wrong(8);
  large_tiles<64><<<2, 512>>>(wrong.data, 3);
  large_tiles<128><<<2, 512>>>(wrong.data, 3);
  large_tiles<256><<<2, 512>>>(wrong.data, 3);
  large_tiles<512><<<2, 512>>>(wrong.data, 3);
  CHECK(wrong.host() == std::vector<int>(8, 0));
}

// --- Coalesced threads and partitions ------------------------------------------------------------------------------

__global__ void coalesced(int* wrong) {
  const int t = int(threadIdx.x);
  if (t % 3 != 1) return;
  auto group = cg::coalesced_threads();
  const int rank = t / 3, size = 11;  // lanes 1, 4, ... 31 of the warp
  if (int(group.size()) != size || int(group.thread_rank()) != rank) wrong[0] = 1;
  if (group.shfl(t, 4) != 13) wrong[1] = 1;
  if (group.shfl_up(t, 2) != (rank >= 2 ? t - 6 : t)) wrong[2] = 1;
  if (group.shfl_down(t, 3) != (rank + 3 < size ? t + 9 : t)) wrong[3] = 1;
  if (group.ballot(rank % 2) != 0x2aa) wrong[4] = 1;
  if (!group.any(t == 1) || group.any(t == 2) || !group.all(t % 3) || group.all(t > 1)) wrong[5] = 1;
  if (group.match_any(rank / 4) != (rank < 4 ? 0xfu : rank < 8 ? 0xf0u : 0x700u)) wrong[6] = 1;
  int equal = -1;
  if (group.match_all(t, equal) != 0 || equal != 0) wrong[7] = 1;
  if (group.match_all(7, equal) != 0x7ff || equal != 1) wrong[8] = 1;
  if (cg::reduce(group, t, cg::plus<int>()) != 176) wrong[9] = 1;
  if (cg::inclusive_scan(group, 1) != rank + 1) wrong[10] = 1;
  auto quads = cg::tiled_partition(group, 4);
  if (int(quads.size()) != (rank < 8 ? 4 : 3) || int(quads.thread_rank()) != rank % 4) wrong[11] = 1;
  if (int(quads.meta_group_rank()) != rank / 4 || quads.meta_group_size() != 3) wrong[12] = 1;
  if (quads.shfl(t, 2) != rank / 4 * 12 + 7) wrong[13] = 1;
  group.sync();
  quads.sync();
}

TEST_CASE("coalesced threads count by rank") {
  Environment arrive("SIMT_EXITED", "arrive");
  Device<int> wrong(14);
  coalesced<<<3, 32>>>(wrong.data);
  CHECK(wrong.host() == std::vector<int>(14, 0));
}

__device__ int aggregated_increment(int* counter) {
  auto group = cg::coalesced_threads();
  int base = 0;
  if (group.thread_rank() == 0) base = atomicAdd(counter, int(group.size()));
  return group.shfl(base, 0) + int(group.thread_rank());
}

// Both branches call the same function: its lanes belong to one of two groups.
__global__ void split_by_sign(const int* in, int n, int* positive, int* negative, int* counters) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= n) return;
  const int value = in[i];
  if (value >= 0)
    positive[aggregated_increment(&counters[0])] = value;
  else
    negative[aggregated_increment(&counters[1])] = value;
}

TEST_CASE("lanes in two branches are not coalesced, even in the same function") {
  constexpr int n = 1000;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i) in[size_t(i)] = i * 37 % 11 - 5;
  std::vector<int> expected[2];
  for (const int value : in) expected[value < 0].push_back(value);
  Device<int> device_in(in), positive(n), negative(n), counters(2);
  split_by_sign<<<8, 128>>>(device_in.data, n, positive.data, negative.data, counters.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const Device<int>* halves[2] = {&positive, &negative};
  for (int k = 0; k < 2; ++k) {
    auto got = halves[k]->host();
    got.resize(expected[k].size());
    CHECK(counters.host()[size_t(k)] == int(expected[k].size()));
    std::sort(got.begin(), got.end());
    std::sort(expected[k].begin(), expected[k].end());
    CHECK(got == expected[k]);
  }
}

__global__ void partitions(int* wrong) {
  const int t = int(threadIdx.x);
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  auto odd_even = cg::binary_partition(warp, t % 2 == 1);
  if (odd_even.size() != 16 || int(odd_even.thread_rank()) != t % 32 / 2) wrong[0] = 1;
  if (int(odd_even.meta_group_rank()) != t % 2 || odd_even.meta_group_size() != 2) wrong[1] = 1;
  if (cg::reduce(odd_even, 1, cg::plus<int>()) != 16) wrong[2] = 1;
  auto whole = cg::binary_partition(warp, true);
  if (whole.size() != 32 || whole.meta_group_size() != 1 || whole.meta_group_rank() != 0) wrong[3] = 1;
  const int label = (t % 32) * (t % 32) % 5;  // 0, 1 or 4
  auto labeled = cg::labeled_partition(warp, label);
  int size = 0, rank = 0;
  for (int lane = 0; lane < 32; ++lane) {
    size += lane * lane % 5 == label;
    rank += lane < t % 32 && lane * lane % 5 == label;
  }
  if (int(labeled.size()) != size || int(labeled.thread_rank()) != rank) wrong[4] = 1;
  if (labeled.meta_group_size() != 3 || int(labeled.meta_group_rank()) != (label == 4 ? 2 : label)) wrong[5] = 1;
  if (cg::reduce(labeled, label, cg::plus<int>()) != size * label) wrong[6] = 1;
  auto half = cg::labeled_partition(odd_even, t % 32 < 16);
  if (half.size() != 8) wrong[7] = 1;
}

TEST_CASE("partitions by a predicate and by a label") {
  Device<int> wrong(8);
  partitions<<<2, 64>>>(wrong.data);
  CHECK(wrong.host() == std::vector<int>(8, 0));
}

__global__ void incomplete_warps(int* wrong) {
  const int t = int(threadIdx.x);  // 40 threads: the second warp has 8
  auto block = cg::this_thread_block();
  auto group = cg::coalesced_threads();
  if (int(group.size()) != (t < 32 ? 32 : 8)) wrong[0] = 1;
  cg::thread_group tile = cg::tiled_partition(block, 16);
  if (int(tile.size()) != (t < 32 ? 16 : 8)) wrong[1] = 1;
  tile.sync();
  auto warp = cg::tiled_partition<32>(block);
  warp.sync();
  if (warp.meta_group_size() != 2) wrong[2] = 1;
  if (warp.ballot(1) != (t < 32 ? 0xffffffffu : 0xffu)) wrong[3] = 1;
  const int4 next = warp.shfl_down(make_int4(t, 1, 2, 3), 1);  // the last lane of 8 reads one that is not there
  if (next.x != (t == 31 ? 31 : t == 39 ? 0 : t + 1) || next.w != (t == 39 ? 0 : 3)) wrong[4] = 1;
}

TEST_CASE("groups of a block that does not fill its last warp") {
  Device<int> wrong(5);
  incomplete_warps<<<1, 40>>>(wrong.data);
  CHECK(wrong.host() == std::vector<int>(5, 0));
}

// --- Collectives ---------------------------------------------------------------------------------------------------

struct Largest {
  float value;
  int index;
};

template <unsigned Size>
__global__ void reductions(const float* in, float* sums, int* wrong) {
  const int t = int(threadIdx.x);
  auto tile = cg::tiled_partition<Size>(cg::this_thread_block());
  const int first = t / int(Size) * int(Size), last = first + int(Size) - 1;
  sums[t] = cg::reduce(tile, in[t], cg::plus<float>());
  if (cg::reduce(tile, t, cg::less<int>()) != first) wrong[0] = 1;
  if (cg::reduce(tile, t, cg::greater<int>()) != last) wrong[1] = 1;
  if (cg::reduce(tile, unsigned(t) | 0x100u, cg::bit_and<unsigned>()) < 0x100u) wrong[2] = 1;
  if (cg::reduce(tile, 1ull << (t - first) % 60, cg::bit_or<unsigned long long>()) != (2ull << (Size - 1)) - 1)
    wrong[3] = 1;
  if (cg::reduce(tile, t == first + 1 ? 5 : 0, cg::bit_xor<int>()) != (Size > 1 ? 5 : 0)) wrong[4] = 1;
  if (cg::reduce(tile, 1.0 * t, cg::plus<double>()) != Size * (first + last) / 2.0) wrong[5] = 1;
  const int product = cg::reduce(tile, t == first ? 3 : 1, [](int a, int b) { return a * b; });
  if (product != 3) wrong[6] = 1;
  const Largest top = cg::reduce(tile, Largest{float(-(t % 7)), t}, [](Largest a, Largest b) {
    return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
  });
  int expected = first;
  for (int i = first; i <= last; ++i)
    if (-(i % 7) > -(expected % 7)) expected = i;
  if (top.index != expected) wrong[7] = 1;
  if (__half2float(cg::reduce(tile, __float2half(1.0f), cg::plus<__half>())) != float(Size)) wrong[8] = 1;
}

template <unsigned Size>
void check_reductions() {
  CAPTURE(Size);
  std::vector<float> in(64);
  for (size_t i = 0; i < in.size(); ++i) in[i] = 1.0f / float(i * i + 1);
  Device<float> device_in(in), sums(64);
  Device<int> wrong(9);
  reductions<Size><<<1, 64>>>(device_in.data, sums.data, wrong.data);
  CHECK(wrong.host() == std::vector<int>(9, 0));
  // CUDA adds up with a butterfly of shuffles.
  for (unsigned step = Size / 2; step; step /= 2) {
    const auto before = in;
    for (size_t i = 0; i < in.size(); ++i) in[i] = before[i] + before[i ^ step];
  }
  CHECK(sums.host() == in);
}

TEST_CASE("reductions over tiles, with CUDA's operators and any other") {
  check_reductions<1>();
  check_reductions<2>();
  check_reductions<8>();
  check_reductions<16>();
  check_reductions<32>();
}

__global__ void scans(int* inclusive, int* exclusive, float* largest) {
  const int t = int(threadIdx.x);
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  inclusive[t] = cg::inclusive_scan(tile, t * t, cg::plus<int>());
  exclusive[t] = cg::exclusive_scan(tile, t * t);
  largest[t] = cg::inclusive_scan(tile, float(t * 7 % 11), [](float a, float b) { return a > b ? a : b; });
}

TEST_CASE("scans") {
  Device<int> inclusive(64), exclusive(64);
  Device<float> largest(64);
  scans<<<1, 64>>>(inclusive.data, exclusive.data, largest.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  int sum = 0;
  float top = 0;
  for (int t = 0; t < 64; ++t) {
    if (t % 16 == 0) sum = 0, top = 0;
    CHECK(exclusive.host()[size_t(t)] == sum);
    sum += t * t;
    top = std::max(top, float(t * 7 % 11));
    CHECK(inclusive.host()[size_t(t)] == sum);
    CHECK(largest.host()[size_t(t)] == top);
  }
}

// Each warp reserves room for the elements that its lanes keep.
__global__ void compact(const int* in, int* out, cuda::atomic<int, cuda::thread_scope_device>* count, int* stored) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int keep = value % 3 == 0;
  const int place = cg::exclusive_scan_update(warp, *count, keep, cg::plus<int>());
  if (keep) out[place] = value;
  cg::reduce_store_async(warp, &stored[blockIdx.x], keep, cg::plus<int>());
}

__global__ void update(cuda::atomic<float, cuda::thread_scope_device>* sum, int* total) {
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  cg::reduce_update_async(tile, *sum, 0.5f, cg::plus<float>());
  cuda::atomic_ref<int, cuda::thread_scope_device> ref(*total);
  cg::reduce_update_async(tile, ref, int(threadIdx.x), cg::greater<int>());
}

TEST_CASE("collectives that end in memory") {
  std::vector<int> in(32 * 20);
  std::iota(in.begin(), in.end(), 0);
  Device<int> device_in(in), out(in.size(), -1), count(1), stored(20);
  compact<<<20, 32>>>(device_in.data, out.data,
                      reinterpret_cast<cuda::atomic<int, cuda::thread_scope_device>*>(count.data), stored.data);
  CHECK(count.host()[0] == 214);
  auto kept = out.host();
  kept.resize(214);
  std::sort(kept.begin(), kept.end());
  for (int i = 0; i < 214; ++i) CHECK(kept[size_t(i)] == 3 * i);
  const auto counts = stored.host();
  CHECK(std::accumulate(counts.begin(), counts.end(), 0) == 214);
  Device<float> sum(1);
  Device<int> total(1);
  update<<<4, 64>>>(reinterpret_cast<cuda::atomic<float, cuda::thread_scope_device>*>(sum.data), total.data);
  CHECK(sum.host()[0] == 128);
  CHECK(total.host()[0] == 63);
}

__global__ void one_for_all(int* calls, int* wrong) {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  cg::invoke_one(tile, [=] { atomicAdd(calls, 1); });
  const int ticket = cg::invoke_one_broadcast(
      tile, [=](int n) { return atomicAdd(calls + 1, n); }, 10);
  if (ticket % 10 || tile.shfl(ticket, 3) != ticket) wrong[0] = 1;
}

TEST_CASE("one thread works for its group") {
  Device<int> calls(2), wrong(1);
  one_for_all<<<3, 64>>>(calls.data, wrong.data);
  CHECK(calls.host() == std::vector<int>{12, 120});
  CHECK(wrong.host()[0] == 0);
}

// --- Asynchronous copies -------------------------------------------------------------------------------------------

__global__ void stage_and_scale(const float* in, float* out, float* early, int n) {
  constexpr int kTile = 96;
  __shared__ float s[2][kTile];
  auto block = cg::this_thread_block();
  const int tiles = (n + kTile - 1) / kTile, t = int(threadIdx.x);
  const auto count = [=](int tile) { return min(kTile, n - tile * kTile); };
  s[0][t] = -7;
  block.sync();
  cg::memcpy_async(block, s[0], in, sizeof(float) * count(0));
  early[t] = s[0][t];
  block.sync();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) {
      cg::memcpy_async(block, s[(tile + 1) % 2], kTile, in + kTile * (tile + 1), count(tile + 1));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    for (int i = t; i < count(tile); i += int(block.size()))
      out[kTile * tile + i] = 2 * s[tile % 2][count(tile) - 1 - i];
    block.sync();
  }
}

TEST_CASE("cg::memcpy_async lands at cg::wait") {
  for (const int n : {1, 95, 96, 97, 1000}) {
    std::vector<float> in(static_cast<size_t>(n));
    std::iota(in.begin(), in.end(), 100.0f);
    Device<float> device_in(in), out(in.size()), early(64);
    stage_and_scale<<<1, 64>>>(device_in.data, out.data, early.data, n);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    for (int i = 0; i < n; ++i) {
      const int tile = i / 96 * 96, count = std::min(96, n - tile);
      CHECK(out.host()[size_t(i)] == 2 * (100.0f + float(tile + count - 1 - (i - tile))));
    }
#ifdef __SIMT__
    CHECK(early.host() == std::vector<float>(64, -7));  // reading before the wait shows
#endif
  }
}

__global__ void copy_per_warp(const int4* in, int4* out) {
  __shared__ int4 s[4][16];
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const unsigned w = warp.meta_group_rank();
  cg::memcpy_async(warp, s[w], in + 16 * w, cuda::aligned_size_t<16>(sizeof s[w]));
  cg::wait(warp);
  if (warp.thread_rank() < 16) out[16 * w + warp.thread_rank()] = s[w][15 - warp.thread_rank()];
}

TEST_CASE("a copy by each warp") {
  std::vector<int> in(256);
  std::iota(in.begin(), in.end(), 0);
  Device<int> device_in(in), out(256);
  copy_per_warp<<<1, 128>>>(reinterpret_cast<int4*>(device_in.data), reinterpret_cast<int4*>(out.data));
  for (int i = 0; i < 256; ++i) CHECK(out.host()[size_t(i)] == i / 64 * 64 + (15 - i % 64 / 4) * 4 + i % 4);
}

// --- Grids ---------------------------------------------------------------------------------------------------------

__global__ void sum_over_grid(const int* in, int n, int* partial, int* out) {
  auto grid = cg::this_grid();
  __shared__ int block_sum;
  if (threadIdx.x == 0) block_sum = 0;
  __syncthreads();
  int sum = 0;
  for (auto i = grid.thread_rank(); i < size_t(n); i += grid.size()) sum += in[i];
  atomicAdd(&block_sum, sum);
  __syncthreads();
  if (threadIdx.x == 0) partial[grid.block_rank()] = block_sum;
  grid.sync();
  if (grid.thread_rank() < grid.num_blocks()) atomicAdd(out, partial[grid.thread_rank()]);
  auto token = grid.barrier_arrive();
  grid.barrier_wait(std::move(token));
  if (*out != n * (n - 1) / 2) out[1] = 1;
  if (!grid.is_valid() || grid.num_threads() != 6 * 64 || grid.dim_blocks().x != 3 || grid.group_dim().y != 2)
    out[2] = 1;
  if (grid.block_index().y != blockIdx.y || grid.thread_index().x != blockIdx.x * blockDim.x + threadIdx.x) out[3] = 1;
}

TEST_CASE("a cooperative launch synchronizes the grid") {
  const int n = 5000;
  std::vector<int> in(static_cast<size_t>(n));
  std::iota(in.begin(), in.end(), 0);
  Device<int> device_in(in), partial(6), out(4);
  int count = n;
  void* arguments[] = {&device_in.data, &count, &partial.data, &out.data};
  CHECK(cudaLaunchCooperativeKernel((void*)sum_over_grid, dim3(3, 2), dim3(64), arguments, 0, nullptr) == cudaSuccess);
  CHECK(out.host() == std::vector<int>{n * (n - 1) / 2, 0, 0, 0});
}

__global__ void is_grid_valid(int* out) { *out = cg::this_grid().is_valid() ? 1 : 2; }

TEST_CASE("an ordinary launch has no valid grid group") {
  Device<int> out(1);
  is_grid_valid<<<1, 1>>>(out.data);
  CHECK(out.host()[0] == 2);
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kGridLine = __LINE__ + 1;
__global__ void grid_sync_without_cooperation() { cg::this_grid().sync(); }
constexpr int kTileLine = __LINE__ + 3;
__global__ void tile_without_a_lane() {
  auto tile = cg::tiled_partition<16>(cg::this_thread_block());
  if (tile.thread_rank() != 3) tile.sync();
  __syncthreads();
}
constexpr int kReduceLine = __LINE__ + 4;
__global__ void reduce_without_a_lane(int* out) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  if (tile.thread_rank() == 31) return;
  *out = cg::reduce(tile, 1, cg::plus<int>());
}
constexpr int kSizeLine = __LINE__ + 1;
__global__ void odd_tile(int size) { cg::tiled_partition(cg::this_thread_block(), unsigned(size)).sync(); }
constexpr int kBlockLine = __LINE__ + 3;
__global__ void block_without_a_thread() {
  if (threadIdx.x == 70) return;
  cg::this_thread_block().sync();
}
__global__ void large_tile_without_a_thread() {
  auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  if (threadIdx.x != 70) tile.sync();
}

TEST_CASE("groups that cannot meet end in a fault with the line") {
  std::string text = fault_of(cudaErrorLaunchFailure, [] { grid_sync_without_cooperation<<<2, 32>>>(); });
  CHECK(contains(text, at_line(__FILE__, kGridLine)));
  text = fault_of(cudaErrorLaunchFailure, [] { tile_without_a_lane<<<1, 64>>>(); });
  CHECK(contains(text, at_line(__FILE__, kTileLine)));
  text = fault_of(cudaErrorLaunchFailure, [] {
    int* out;
    CHECK(cudaMalloc(&out, sizeof(int)) == cudaSuccess);
    reduce_without_a_lane<<<1, 64>>>(out);
  });
  CHECK(contains(text, at_line(__FILE__, kReduceLine)));
  for (const int size : {0, 3, 33, 64}) {
    text = fault_of(cudaErrorLaunchFailure, [&] { odd_tile<<<1, 64>>>(size); });
    CHECK(contains(text, at_line(__FILE__, kSizeLine)));
  }
  text = fault_of(cudaErrorLaunchFailure, [] { block_without_a_thread<<<1, 96>>>(); });
  CHECK(contains(text, at_line(__FILE__, kBlockLine)));
  Environment timeout("SIMT_TIMEOUT", "0.5");
  text = fault_of(cudaErrorLaunchTimeout, [] { large_tile_without_a_thread<<<1, 128>>>(); });
  CHECK(contains(text, "large_tile_without_a_thread"));
}
#endif
