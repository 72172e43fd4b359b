// CUB's collectives against sums made one after the other, for full and partial blocks, one and three dimensions, every
// algorithm, and types for which CUB takes different ways.
#include "testing.h"

#include <cub/cub.cuh>

#include <algorithm>
#include <numeric>

// --- Where the memory lies: the sizes that CUB of CUDA 13.0 has
struct Three {
  float a, b, c;
};
static_assert(sizeof(cub::BlockReduce<float, 256>::TempStorage) == 44);
static_assert(sizeof(cub::BlockReduce<float, 1024>::TempStorage) == 164);
static_assert(sizeof(cub::BlockReduce<double, 96>::TempStorage) == 40);
static_assert(sizeof(cub::BlockReduce<Three, 48>::TempStorage) == 40);
static_assert(sizeof(cub::BlockReduce<float, 8, cub::BLOCK_REDUCE_WARP_REDUCTIONS, 4, 2>::TempStorage) == 16);

// --- Values and operators

constexpr int kBlocks = 2;

template <class T>
std::vector<T> numbers(size_t count) {
  std::vector<T> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = T(int((i * 7919 + 13) % 101) - 50);
  return made;
}

// Does not commute: a thread's values must be combined in their order. (a, b) stands for x -> a x + b, modulo 2^32.
struct Affine {
  unsigned a, b;
};
inline bool operator==(Affine x, Affine y) { return x.a == y.a && x.b == y.b; }
struct Compose {
  __host__ __device__ Affine operator()(Affine f, Affine g) const { return {f.a * g.a, f.b * g.a + g.b}; }
};
std::vector<Affine> maps(size_t count) {
  std::vector<Affine> made(count);
  for (size_t i = 0; i < count; ++i) made[i] = {unsigned(2 * i + 3), unsigned(i * i + 1)};
  return made;
}

// --- Reductions of a block

template <class Reduce, class T, class Op>
__global__ void reduce_block(const T* in, T* out, Op op, int valid) {
  __shared__ typename Reduce::TempStorage temp;
  const int threads = int(blockDim.x * blockDim.y * blockDim.z);
  const int tid = int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  const T value = in[int(blockIdx.x) * threads + tid];
  const T total = valid == threads ? Reduce(temp).Reduce(value, op) : Reduce(temp).Reduce(value, op, valid);
  if (tid == 0) out[blockIdx.x] = total;
}

template <int x, cub::BlockReduceAlgorithm algorithm, int y = 1, int z = 1, class T, class Op>
void check_reduce(const std::vector<T>& all, Op op, std::vector<int> valids) {
  constexpr int threads = x * y * z;
  const std::vector<T> in(all.begin(), all.begin() + kBlocks * threads);
  const Device<T> device_in(in);
  for (int valid : valids) {
    Device<T> out(kBlocks);
    reduce_block<cub::BlockReduce<T, x, algorithm, y, z>>
        <<<kBlocks, dim3(x, y, z)>>>(device_in.data, out.data, op, valid);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    CAPTURE(threads);
    CAPTURE(valid);
    CAPTURE(int(algorithm));
    const std::vector<T> got = out.host();
    for (int block = 0; block < kBlocks; ++block) {
      const auto first = in.begin() + block * threads;
      CHECK(got[size_t(block)] == std::accumulate(first + 1, first + valid, *first, op));
    }
  }
}

template <cub::BlockReduceAlgorithm algorithm>
void check_reductions() {
  const auto floats = numbers<float>(4096);
  const cuda::std::plus<> plus;
  check_reduce<256, algorithm>(floats, plus, {256, 255, 33, 32, 31, 1});
  check_reduce<1024, algorithm>(floats, plus, {1024, 1000});
  check_reduce<96, algorithm>(floats, plus, {96, 95, 64, 65});
  check_reduce<100, algorithm>(floats, cuda::maximum<>{}, {100, 99, 5});
  check_reduce<20, algorithm>(floats, plus, {20, 19, 1});
  check_reduce<1, algorithm>(floats, plus, {1});
  check_reduce<8, algorithm, 4, 3>(floats, plus, {96, 50});
  check_reduce<128, algorithm>(numbers<int>(4096), plus, {128, 100});
  check_reduce<64, algorithm>(numbers<double>(4096), cuda::minimum<>{}, {64, 40});
}

TEST_CASE("reductions of a block by warps") {
  check_reductions<cub::BLOCK_REDUCE_WARP_REDUCTIONS>();
  check_reduce<160, cub::BLOCK_REDUCE_WARP_REDUCTIONS>(maps(4096), Compose{}, {160, 159, 129, 7});
}
TEST_CASE("reductions of a block by one warp that rakes") {
  check_reductions<cub::BLOCK_REDUCE_RAKING>();
  check_reduce<160, cub::BLOCK_REDUCE_RAKING>(maps(4096), Compose{}, {160, 159, 129, 7});
}
TEST_CASE("reductions of a block by one warp that rakes what the others have") {
  check_reductions<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>();
}

// Programs have one type for the largest block that they launch, and say how many threads there are.
__global__ void smaller_block(const float* in, float* out) {
  using Reduce = cub::BlockReduce<float, 1024>;
  __shared__ Reduce::TempStorage temp;
  const float total = Reduce(temp).Sum(in[threadIdx.x], int(blockDim.x));
  __syncthreads();
  const float most = Reduce(temp).Reduce(in[threadIdx.x], cuda::maximum<>{}, int(blockDim.x));
  if (threadIdx.x == 0) out[0] = total, out[1] = most;
}
TEST_CASE("a block of fewer threads than its BlockReduce, which is used twice") {
  for (unsigned threads : {1u, 31u, 33u, 256u, 700u, 1024u}) {
    const auto in = numbers<float>(threads);
    const Device<float> device_in(in);
    Device<float> out(2);
    smaller_block<<<1, threads>>>(device_in.data, out.data);
    CHECK(out.host() ==
          std::vector<float>{std::accumulate(in.begin(), in.end(), 0.f), *std::max_element(in.begin(), in.end())});
  }
}

// Memory of its own, several items per thread, one union for two collectives, and the names of older versions.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
__global__ void other_forms(const int* in, int* out) {
  using Reduce = cub::BlockReduce<int, 64>;
  using Scan = cub::BlockScan<int, 64>;
  __shared__ union {
    Reduce::TempStorage reduce;
    Scan::TempStorage scan;
  } temp;
  int items[3] = {in[3 * threadIdx.x], in[3 * threadIdx.x + 1], in[3 * threadIdx.x + 2]};
  const int sum = Reduce().Sum(items);
#ifdef __SIMT__
  const int most = Reduce(temp.reduce).Reduce(items, cub::Max());
#else
  const int most = Reduce(temp.reduce).Reduce(items, cuda::maximum<>());
#endif
  __syncthreads();
  int before[3];
  Scan(temp.scan).ExclusiveSum(items, before);
  out[2 + threadIdx.x] = before[1];
  if (threadIdx.x == 0) out[0] = sum, out[1] = most;
}
TEST_CASE("other forms of a reduction") {
  const auto in = numbers<int>(192);
  const Device<int> device_in(in);
  Device<int> out(66);
  other_forms<<<1, 64>>>(device_in.data, out.data);
  const auto got = out.host();
  CHECK(got[0] == std::accumulate(in.begin(), in.end(), 0));
  CHECK(got[1] == *std::max_element(in.begin(), in.end()));
  int wrong = 0;
  for (int t = 0; t < 64; ++t) wrong += got[size_t(2 + t)] != std::accumulate(in.begin(), in.begin() + 3 * t + 1, 0);
  CHECK(wrong == 0);
}

// --- Reductions of a warp

template <int threads, class T, class Op>
__global__ void reduce_warps(const T* in, T* out, Op op, int valid) {
  using Reduce = cub::WarpReduce<T, threads>;
  __shared__ typename Reduce::TempStorage temp[64 / threads];
  Reduce reduce(temp[threadIdx.x / threads]);
  const T value = in[threadIdx.x];
  out[threadIdx.x] = valid == threads ? reduce.Reduce(value, op) : reduce.Reduce(value, op, valid);
}
template <int threads, class T, class Op>
void check_warp_reduce(const std::vector<T>& in, Op op, unsigned block, int valid) {
  const Device<T> device_in(in);
  Device<T> out(in.size());
  reduce_warps<threads><<<1, block>>>(device_in.data, out.data, op, valid);
  const auto got = out.host();
  for (unsigned first = 0; first < block; first += threads) {
    CAPTURE(threads);
    CAPTURE(valid);
    const auto begin = in.begin() + first;
    CHECK(got[first] == std::accumulate(begin + 1, begin + valid, *begin, op));
  }
}
TEST_CASE("reductions of a warp and of its parts") {
  const cuda::std::plus<> plus;
  for (int valid : {32, 31, 1}) {
    check_warp_reduce<32>(numbers<float>(64), plus, 64, valid);
    check_warp_reduce<32>(numbers<int>(64), cuda::minimum<>{}, 64, valid);
    check_warp_reduce<32>(maps(64), Compose{}, 64, valid);
  }
  for (int valid : {8, 3}) check_warp_reduce<8>(numbers<double>(64), plus, 64, valid);
  for (int valid : {12, 5}) check_warp_reduce<12>(numbers<float>(64), plus, 12, valid);  // no power of two
}

__global__ void segmented(const int* in, const int* flags, int* heads, int* tails) {
  using Reduce = cub::WarpReduce<int>;
  __shared__ Reduce::TempStorage temp;
  const unsigned lane = threadIdx.x;
  heads[lane] = Reduce(temp).HeadSegmentedSum(in[lane], flags[lane]);
  tails[lane] = Reduce(temp).TailSegmentedReduce(in[lane], flags[lane], cuda::std::plus<>{});
}
TEST_CASE("reductions of segments of a warp") {
  const auto in = numbers<int>(32);
  std::vector<int> flags(32);
  for (int lane : {0, 3, 4, 17, 31}) flags[size_t(lane)] = 1;
  const Device<int> device_in(in), device_flags(flags);
  Device<int> heads(32), tails(32);
  segmented<<<1, 32>>>(device_in.data, device_flags.data, heads.data, tails.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  const auto sum = [&](int first, int last) { return std::accumulate(in.begin() + first, in.begin() + last + 1, 0); };
  const auto head = heads.host(), tail = tails.host();
  CHECK(head[0] == sum(0, 2));
  CHECK(head[3] == sum(3, 3));
  CHECK(head[4] == sum(4, 16));
  CHECK(head[17] == sum(17, 30));
  CHECK(head[31] == sum(31, 31));
  CHECK(tail[0] == sum(0, 0));
  CHECK(tail[1] == sum(1, 3));
  CHECK(tail[4] == sum(4, 4));
  CHECK(tail[5] == sum(5, 17));
  CHECK(tail[18] == sum(18, 31));
}

// --- Scans

enum Form { kPlain, kAggregate, kInitial, kInitialAggregate, kCallback };

template <class T>
struct Prefix {  // as a block that goes through tiles has it: what it returns counts before this tile
  T running;
  template <class Op>
  struct With {
    T running;
    Op op;
    __device__ T operator()(T aggregate) {
      const T old = running;
      running = op(running, aggregate);
      return old;
    }
  };
};

template <class Scan, bool inclusive, int form, class T, class Op>
__device__ void scan_one(Scan scan, T value, T& result, T initial, Op op, T& aggregate) {
  typename Prefix<T>::template With<Op> prefix{initial, op};
  if constexpr (inclusive) {
    if constexpr (form == kPlain) scan.InclusiveScan(value, result, op);
    if constexpr (form == kAggregate) scan.InclusiveScan(value, result, op, aggregate);
    if constexpr (form == kCallback) scan.InclusiveScan(value, result, op, prefix);
  } else {
    if constexpr (form == kPlain) scan.ExclusiveScan(value, result, op);
    if constexpr (form == kAggregate) scan.ExclusiveScan(value, result, op, aggregate);
    if constexpr (form == kInitial) scan.ExclusiveScan(value, result, initial, op);
    if constexpr (form == kInitialAggregate) scan.ExclusiveScan(value, result, initial, op, aggregate);
    if constexpr (form == kCallback) scan.ExclusiveScan(value, result, op, prefix);
  }
}

template <class Scan, bool inclusive, int form, class T, class Op>
__global__ void scan_block(const T* in, T* out, T* aggregates, T initial, Op op) {
  __shared__ typename Scan::TempStorage temp;
  const unsigned tid = threadIdx.x + blockDim.x * threadIdx.y;
  T result, aggregate = initial;
  scan_one<Scan, inclusive, form>(Scan(temp), in[tid], result, initial, op, aggregate);
  out[tid] = result;
  aggregates[tid] = aggregate;
}

template <class Scan, bool inclusive, int form, class T, class Op>
void check_scan_form(const std::vector<T>& in, dim3 block, T initial, Op op) {
  const Device<T> device_in(in);
  Device<T> out(in.size()), aggregates(in.size());
  scan_block<Scan, inclusive, form><<<1, block>>>(device_in.data, out.data, aggregates.data, initial, op);
  const auto got = out.host(), totals = aggregates.host();
  const bool has_initial = form >= kInitial;
  const T total = std::accumulate(in.begin() + 1, in.end(), in[0], op);
  int wrong = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    if (!inclusive && !has_initial && i == 0) continue;  // undefined
    const auto end = in.begin() + long(i) + inclusive;
    const T expected =
        has_initial ? std::accumulate(in.begin(), end, initial, op) : std::accumulate(in.begin() + 1, end, in[0], op);
    wrong += !(got[i] == expected);
    if (form == kAggregate || form == kInitialAggregate) wrong += !(totals[i] == total);
  }
  CAPTURE(in.size());
  CAPTURE(inclusive);
  CAPTURE(form);
  CHECK(wrong == 0);
}

template <int x, int y, cub::BlockScanAlgorithm algorithm, class T, class Op>
void check_scan(std::vector<T> in, T initial, Op op) {
  using Scan = cub::BlockScan<T, x, algorithm, y>;
  in.resize(x * y);
  const dim3 block(x, y);
  check_scan_form<Scan, true, kPlain>(in, block, initial, op);
  check_scan_form<Scan, true, kAggregate>(in, block, initial, op);
  check_scan_form<Scan, true, kCallback>(in, block, initial, op);
  check_scan_form<Scan, false, kPlain>(in, block, initial, op);
  check_scan_form<Scan, false, kAggregate>(in, block, initial, op);
  check_scan_form<Scan, false, kInitial>(in, block, initial, op);
  check_scan_form<Scan, false, kInitialAggregate>(in, block, initial, op);
  check_scan_form<Scan, false, kCallback>(in, block, initial, op);
}

TEST_CASE("scans of a block") {
  const cuda::std::plus<> plus;
  check_scan<256, 1, cub::BLOCK_SCAN_RAKING>(numbers<int>(256), 5, plus);
  check_scan<100, 1, cub::BLOCK_SCAN_RAKING>(maps(100), Affine{3, 1}, Compose{});
  check_scan<16, 2, cub::BLOCK_SCAN_RAKING>(numbers<float>(32), 5.f, plus);
  check_scan<20, 1, cub::BLOCK_SCAN_RAKING>(maps(20), Affine{3, 1}, Compose{});
  check_scan<96, 2, cub::BLOCK_SCAN_RAKING_MEMOIZE>(numbers<float>(192), 5.f, plus);
  check_scan<256, 1, cub::BLOCK_SCAN_WARP_SCANS>(numbers<int>(256), 5, plus);
  check_scan<32, 3, cub::BLOCK_SCAN_WARP_SCANS>(maps(96), Affine{3, 1}, Compose{});
  check_scan<100, 1, cub::BLOCK_SCAN_WARP_SCANS>(numbers<float>(100), 5.f, cuda::maximum<>{});
}

template <int threads, bool inclusive, int form, class T, class Op>
void check_warp_scan(std::vector<T> in, T initial, Op op) {
  in.resize(threads);
  check_scan_form<cub::WarpScan<T, threads>, inclusive, form>(in, dim3(threads), initial, op);
}
TEST_CASE("scans of a warp") {
  const cuda::std::plus<> plus;
  check_warp_scan<32, true, kPlain>(numbers<float>(32), 5.f, plus);
  check_warp_scan<32, true, kAggregate>(maps(32), Affine{3, 1}, Compose{});
  check_warp_scan<32, false, kPlain>(maps(32), Affine{3, 1}, Compose{});
  check_warp_scan<32, false, kInitial>(numbers<int>(32), 5, plus);
  check_warp_scan<8, false, kInitialAggregate>(numbers<float>(8), 5.f, plus);
  check_warp_scan<12, false, kInitialAggregate>(numbers<int>(12), 5, plus);
  check_warp_scan<12, true, kAggregate>(maps(12), Affine{3, 1}, Compose{});
}

template <bool inclusive, int form>
__global__ void scan_items(const int* in, int* out) {
  using Scan = cub::BlockScan<int, 64>;
  __shared__ Scan::TempStorage temp;
  int items[4], aggregate = 0;
  Prefix<int>::With<cuda::std::plus<>> prefix{7, {}};
  for (unsigned i = 0; i < 4; ++i) items[i] = in[4 * threadIdx.x + i];
  if constexpr (form == kPlain && inclusive) Scan(temp).InclusiveSum(items, items);
  if constexpr (form == kPlain && !inclusive) Scan(temp).ExclusiveSum(items, items);
  if constexpr (form == kInitialAggregate && inclusive)
    Scan(temp).InclusiveScan(items, items, 7, cuda::std::plus<>{}, aggregate);
  if constexpr (form == kCallback && inclusive) Scan(temp).InclusiveSum(items, items, prefix);
  if constexpr (form == kCallback && !inclusive) Scan(temp).ExclusiveSum(items, items, prefix);
  for (unsigned i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = items[i];
}
template <bool inclusive, int form>
void check_items() {
  const auto in = numbers<int>(256);
  const Device<int> device_in(in);
  Device<int> out(256);
  scan_items<inclusive, form><<<1, 64>>>(device_in.data, out.data);
  const auto got = out.host();
  int wrong = 0;
  for (size_t i = 0; i < 256; ++i)
    wrong += got[i] != std::accumulate(in.begin(), in.begin() + long(i) + inclusive, form == kPlain ? 0 : 7);
  CHECK(wrong == 0);
}
TEST_CASE("scans of several items per thread") {
  check_items<true, kPlain>();
  check_items<false, kPlain>();
  check_items<true, kInitialAggregate>();
  check_items<true, kCallback>();
  check_items<false, kCallback>();
}

// --- Loads and stores

template <class Load, class Store, class T, int items>
__global__ void copy_tile(const T* in, T* out, int valid) {
  __shared__ typename Load::TempStorage load;
  __shared__ typename Store::TempStorage store;
  T values[items];
  const int tile = int(blockDim.x) * items;
  if (valid == tile) {
    Load(load).Load(in, values);
  } else {
    Load(load).Load(in, values, valid, T(-1));
  }
  for (T& value : values) value = value + value;
  if (valid == tile) {
    Store(store).Store(out, values);
  } else {
    Store(store).Store(out, values, valid);
  }
}
template <cub::BlockLoadAlgorithm load, cub::BlockStoreAlgorithm store, class T, int items>
void check_copy() {
  constexpr int threads = 64, tile = threads * items;
  const auto in = numbers<T>(tile);
  const Device<T> device_in(in);
  for (int valid : {tile, tile - 1, 65, 1, 0}) {
    Device<T> out(tile);
    copy_tile<cub::BlockLoad<T, threads, items, load>, cub::BlockStore<T, threads, items, store>, T, items>
        <<<1, threads>>>(device_in.data, out.data, valid);
    const auto got = out.host();
    int wrong = 0;
    for (int i = 0; i < tile; ++i) wrong += got[size_t(i)] != (i < valid ? in[size_t(i)] + in[size_t(i)] : T(0));
    CAPTURE(int(load));
    CAPTURE(items);
    CAPTURE(valid);
    CHECK(wrong == 0);
  }
}
TEST_CASE("loads and stores of a block's tile") {
  check_copy<cub::BLOCK_LOAD_DIRECT, cub::BLOCK_STORE_DIRECT, float, 3>();
  check_copy<cub::BLOCK_LOAD_STRIPED, cub::BLOCK_STORE_STRIPED, float, 4>();
  check_copy<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE, float, 8>();
  check_copy<cub::BLOCK_LOAD_VECTORIZE, cub::BLOCK_STORE_VECTORIZE, double, 3>();
  check_copy<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_TRANSPOSE, float, 5>();
  check_copy<cub::BLOCK_LOAD_TRANSPOSE, cub::BLOCK_STORE_DIRECT, short, 8>();
  check_copy<cub::BLOCK_LOAD_WARP_TRANSPOSE, cub::BLOCK_STORE_WARP_TRANSPOSE, int, 4>();
  check_copy<cub::BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED, cub::BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED, double, 8>();
}

template <bool sliced>
__global__ void scatter(const int* ranks, int* out) {
  using Exchange = cub::BlockExchange<int, 64, 2, sliced>;
  __shared__ typename Exchange::TempStorage temp;
  int items[2] = {int(2 * threadIdx.x), int(2 * threadIdx.x + 1)};
  int places[2] = {ranks[2 * threadIdx.x], ranks[2 * threadIdx.x + 1]};
  Exchange(temp).ScatterToStriped(items, items, places);
  for (unsigned i = 0; i < 2; ++i) out[threadIdx.x + 64 * i] = items[i];
}
TEST_CASE("items scattered by their ranks") {
  std::vector<int> ranks(128);
  for (int i = 0; i < 128; ++i) ranks[size_t(i)] = i * 37 % 128;
  const Device<int> device_ranks(ranks);
  for (bool sliced : {false, true}) {
    Device<int> out(128);
    if (sliced)
      scatter<true><<<1, 64>>>(device_ranks.data, out.data);
    else
      scatter<false><<<1, 64>>>(device_ranks.data, out.data);
    const auto got = out.host();
    int wrong = 0;
    for (int i = 0; i < 128; ++i) wrong += got[size_t(ranks[size_t(i)])] != i;
    CHECK(wrong == 0);
  }
}
