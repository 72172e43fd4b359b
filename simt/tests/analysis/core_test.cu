// What the analysis sees of kernels whose every access is known: requests, their cost, operations, events and faults.
#include "../testing.h"

#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_profiler_api.h>
#include <cuda/atomic>
#include <cuda/barrier>

#include <map>

#include "analysis/counters.h"
#include "analysis/dump.h"
#include "analysis/hooks.h"
#include "analysis/recorder.h"

using namespace simt::analysis;

namespace {

// Everything that is reported, for the tests to look at.
struct Log : Observer {
  std::vector<Request> requests;
  std::vector<std::string> order;
  std::vector<Fault> faults;
  std::vector<std::string> names;
  size_t landed_bytes = 0;

  void request(const Request& r) override {
    requests.push_back(r);
    order.push_back(r.kind == Kind::load ? "load" : r.kind == Kind::store ? "store" : "atomic");
    names.push_back(variable_text(r.address[__builtin_ctz(r.mask)]));
  }
  void fenced(WarpRef, unsigned, FenceScope) override { add("fence"); }
  void block_barrier_completed(const BlockInfo&) override { add("barrier"); }
  void warp_synchronized(WarpRef, uint32_t) override { add("warp barrier"); }
  void released(WarpRef, unsigned, const void*) override { add("release"); }
  void acquired(WarpRef, unsigned, const void*) override { add("acquire"); }
  void landed(WarpRef, unsigned, const void*, size_t size, const void*) override { landed_bytes += size; }
  void faulted(const Fault& fault) override { faults.push_back(fault); }

 private:
  void add(const char* event) {  // one for all lanes
    if (order.empty() || order.back() != event) order.push_back(event);
  }
};

Log& log() {
  static Log* log = [] {
    auto* made = new Log;
    add_observer(made);
    return made;
  }();
  return *log;
}

// The counts of one kind of access, summed over the last kernel's sites.
struct Sum {
  uint64_t requests = 0, lanes = 0, units = 0, ideal = 0;
};
Sum sum_of(Space space, Kind kind, uint32_t size) {
  Sum sum;
  for (const auto& [key, site] : counters().kernels().back()->sites) {
    if (site.like.space != space || site.like.kind != kind || site.like.size != size) continue;
    sum.requests += site.requests;
    sum.lanes += site.lanes;
    sum.units += site.units;
    sum.ideal += site.ideal;
  }
  return sum;
}

OperationCount count_of(Operation operation) {
  OperationCount sum;
  for (const auto& [key, count] : counters().kernels().back()->operations) {
    if (key.second != operation) continue;
    sum.calls += count.calls;
    sum.lanes += count.lanes;
  }
  return sum;
}

template <class Launch>
const Kernel& run(Launch launch) {
  log() = Log();
  launch();
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  return *counters().kernels().back();
}

}  // namespace

// --- Requests ------------------------------------------------------------------------------------------------------

__global__ void strided(const float* in, float* out, int stride, int offset) {
  out[threadIdx.x] = in[threadIdx.x * stride + offset];
}

TEST_CASE("sectors of a warp's request") {
  Device<float> in(4096), out(32);
  const struct {
    int stride, offset;
    unsigned sectors, ideal;
  } cases[] = {{1, 0, 4, 4}, {2, 0, 8, 4}, {32, 0, 32, 4}, {0, 7, 1, 1}, {1, 1, 5, 4}, {3, 0, 12, 4}};
  for (const auto& c : cases) {
    const std::string grid_of_its_own = std::to_string(c.stride * 100 + c.offset);
    run([&] { strided<<<1, 32, size_t(c.stride * 100 + c.offset)>>>(in.data, out.data, c.stride, c.offset); });
    CAPTURE(grid_of_its_own);
    const Sum loads = sum_of(Space::global, Kind::load, 4);
    CHECK(loads.requests == 1);
    CHECK(loads.lanes == 32);
    CHECK(loads.units == c.sectors);
    CHECK(loads.ideal == c.ideal);
  }
}

TEST_CASE("what runs while the profiler is stopped is not counted, and reported to the other observers") {
  Device<float> in(64), out(32);
  const auto launch = [&] { strided<<<1, 32, 4321>>>(in.data, out.data, 1, 0); };
  const uint64_t before = run(launch).launches;
  cudaProfilerStop();
  CHECK(run(launch).launches == before);
  CHECK(sum_of(Space::global, Kind::load, 4).requests == before);
  CHECK(log().requests.size() == 2);
  cudaProfilerStart();
  CHECK(run(launch).launches == before + 1);
  CHECK(sum_of(Space::global, Kind::load, 4).requests == before + 1);
}

__global__ void whole_vectors(const float* in, float* out, const __half* halves, __half* half_out) {
  const int i = threadIdx.x;
  auto* vectors = reinterpret_cast<float4*>(out);
  const float4 a = reinterpret_cast<const float4*>(in)[i];
  const float4 b = __ldg(reinterpret_cast<const float4*>(in) + i + 32);
  vectors[i] = {a.x, b.y, a.z, b.w};
  vectors[i + 32] = make_float4(a.w, b.x, a.y, b.z);
  __stcs(vectors + i + 64, b);
  reinterpret_cast<float2*>(out)[i + 192] = make_float2(a.x, a.y);
  const __half2 h = reinterpret_cast<const __half2*>(halves)[i];
  reinterpret_cast<__half2*>(half_out)[i] = __hadd2(h, h);
  half_out[i + 64] = __float2half(a.x);
}

TEST_CASE("a vector is one access, however it is written") {
  Device<float> in(256), out(512);
  Device<__half> halves(128), half_out(128);
  run([&] { whole_vectors<<<1, 32>>>(in.data, out.data, halves.data, half_out.data); });
  CHECK(sum_of(Space::global, Kind::load, 16).requests == 2);
  CHECK(sum_of(Space::global, Kind::load, 16).units == 32);
  CHECK(sum_of(Space::global, Kind::store, 16).requests == 3);
  CHECK(sum_of(Space::global, Kind::store, 8).requests == 1);
  CHECK(sum_of(Space::global, Kind::load, 4).requests == 1);
  CHECK(sum_of(Space::global, Kind::store, 4).requests == 1);
  CHECK(sum_of(Space::global, Kind::store, 2).requests == 1);
  CHECK(sum_of(Space::global, Kind::store, 2).units == 2);
}

__global__ void columns(float* out, int row) {
  __shared__ float tile[32 * 33];
  tile[threadIdx.x * row] = 1;
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x * row];
}

TEST_CASE("bank conflicts, and the names of variables") {
  Device<float> out(32);
  run([&] { columns<<<1, 32, 32>>>(out.data, 32); });
  CHECK(sum_of(Space::shared, Kind::load, 4).units == 32);
  CHECK(sum_of(Space::shared, Kind::load, 4).ideal == 1);
  run([&] { columns<<<1, 32, 33>>>(out.data, 33); });
  CHECK(sum_of(Space::shared, Kind::load, 4).units == 1);
  CHECK(log().names.front() == "tile + 0 bytes");
  CHECK(log().names.back() == "cudaMalloc of 128 bytes + 0 bytes");
}

__device__ int counter;
__constant__ int numbers[4];
__global__ void spaces(int* out) {
  int local[8];
  for (int i = 0; i < 8; ++i) local[i] = i * int(threadIdx.x);
  out[threadIdx.x] = counter + numbers[threadIdx.x % 4] + local[threadIdx.x % 8];
}

TEST_CASE("__device__ variables are global memory; constants, locals and built-in variables are not counted") {
  Device<int> out(32);
  const Kernel& kernel = run([&] { spaces<<<1, 32>>>(out.data); });
  CHECK(sum_of(Space::global, Kind::load, 4).requests == 1);
  CHECK(log().names.front() == "counter + 0 bytes");
  CHECK(kernel.sites.size() == 2);
}

__global__ void read_twice(const float* in, float* out) {
  float sum = 0;
  for (int i = 0; i < 2; ++i) {
    sum += in[threadIdx.x];
    __syncthreads();
  }
  out[0] = sum;
}

TEST_CASE("distinct bytes are counted once") {
  Device<float> in(64), out(1);
  const Kernel& kernel = run([&] { read_twice<<<1, 64>>>(in.data, out.data); });
  CHECK(kernel.load_bytes == 512);
  CHECK(kernel.distinct_load_bytes == 256);
  CHECK(kernel.store_bytes == 256);
  CHECK(kernel.distinct_store_bytes == 4);
}

__device__ double atomicAdd(double* word, double value, int) {  // a name of CUDA's, a function of the program's
  const double old = *word;
  *word = old + value;
  return old;
}
constexpr int kOfTheProgram = __LINE__ - 4;
__global__ void calls_its_own(double* sum) { atomicAdd(sum, 1., 0); }

TEST_CASE("a function of the program that has a name of CUDA's keeps its lines") {
  Device<double> sum(1);
  const Kernel& kernel = run([&] { calls_its_own<<<1, 1>>>(sum.data); });
  REQUIRE(kernel.sites.size() == 2);
  CHECK(contains(place_json(kernel.sites.begin()->second.like.pc), "\"line\":" + std::to_string(kOfTheProgram)));
}

__global__ void updates(const float* in, float* sums) { atomicAdd(&sums[threadIdx.x % 2], in[threadIdx.x]); }

TEST_CASE("what atomics touch is counted apart from loads and stores") {
  Device<float> in(64), sums(2);
  const Kernel& kernel = run([&] { updates<<<1, 64>>>(in.data, sums.data); });
  CHECK(kernel.distinct_load_bytes == 256);
  CHECK(kernel.distinct_store_bytes == 0);
  CHECK(kernel.distinct_atomic_bytes == 8);
}

__global__ void __cluster_dims__(2, 1, 1) into_both(float* out) {
  __shared__ float sums[8];
  const auto cluster = cooperative_groups::this_cluster();
  if (threadIdx.x < 2) cluster.map_shared_rank(sums, threadIdx.x)[cluster.block_rank()] = 1;
  cluster.sync();
  out[0] = sums[0];
}

TEST_CASE("each block of a cluster has banks of its own") {
  Device<float> out(1);
  run([&] { into_both<<<2, 32>>>(out.data); });
  const Sum stores = sum_of(Space::shared, Kind::store, 4);
  CHECK(stores.requests == 2);
  CHECK(stores.units == 4);
  CHECK(stores.ideal == 4);
}

// --- Divergence and operations -------------------------------------------------------------------------------------

__global__ void diverge(const float* in, float* out) {
  const int i = threadIdx.x;
  float sum = 0;
  for (int k = 0; k < i % 4; ++k) sum += in[32 * k + i];  // 0, 1, 2 and 3 rounds: 24, 16 and 8 lanes
  if (i % 2)
    out[i] = sum;
  else
    out[i] = sum * 2;
}

TEST_CASE("lanes that diverge meet again") {
  Device<float> in(128), out(32);
  for (const char* order : {"forward", "reversed", "5"}) {
    Environment environment("SIMT_ORDER", order);
    run([&] { diverge<<<1, 32>>>(in.data, out.data); });
    const Request* loads[3] = {};
    unsigned count = 0, stores = 0;
    for (const Request& r : log().requests) {
      if (r.kind == Kind::load && count < 3) loads[count++] = &r;
      stores += r.kind == Kind::store;
    }
    REQUIRE(count == 3);
    CHECK(loads[0]->mask == 0xeeeeeeeeu);
    CHECK(loads[1]->mask == 0xccccccccu);
    CHECK(loads[2]->mask == 0x88888888u);
    CHECK(stores <= 2);
  }
}

__global__ void operations(float* out) {
  float v = threadIdx.x;
  for (int offset = 16; offset; offset /= 2) v += __shfl_xor_sync(~0u, v, offset);
  if (__any_sync(~0u, v > 1)) __syncwarp();
  __syncthreads();
  if (threadIdx.x < 16) v += __shfl_down_sync(0xffff, v, 1);
  __syncthreads();
  out[threadIdx.x] = v;
}

TEST_CASE("operations are counted by the warp") {
  Device<float> out(64);
  run([&] { operations<<<1, 64>>>(out.data); });
  CHECK(count_of(Operation::shuffle).calls == 11);
  CHECK(count_of(Operation::shuffle).lanes == 10 * 32 + 16);
  CHECK(count_of(Operation::vote).calls == 2);
  CHECK(count_of(Operation::warp_sync).calls == 2);
  CHECK(count_of(Operation::block_barrier).calls == 4);
}

__global__ void texture_reads(cudaTextureObject_t texture, float* out) {
  float v = tex1Dfetch<float>(texture, threadIdx.x);
  if (threadIdx.x < 16) v += tex1Dfetch<float>(texture, 2 * threadIdx.x);
  out[threadIdx.x] = v;
}

TEST_CASE("texture reads are counted by the warp, and are no requests to memory") {
  Device<float> in(64), out(64);
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = in.data;
  resource.res.linear.desc = cudaCreateChannelDesc<float>();
  resource.res.linear.sizeInBytes = 64 * sizeof(float);
  const cudaTextureDesc how = {};
  cudaTextureObject_t texture = 0;
  REQUIRE(cudaCreateTextureObject(&texture, &resource, &how, nullptr) == cudaSuccess);
  run([&] { texture_reads<<<1, 64>>>(texture, out.data); });
  CHECK(count_of(Operation::texture_read).calls == 3);
  CHECK(count_of(Operation::texture_read).lanes == 64 + 16);
  CHECK(sum_of(Space::global, Kind::load, 4).requests == 0);
  CHECK(sum_of(Space::global, Kind::store, 4).requests == 2);
  CHECK(cudaDestroyTextureObject(texture) == cudaSuccess);
}

// --- Atomics, fences and barriers in memory --------------------------------------------------------------------------

__global__ void add(int* sum, int* spread) {
  atomicAdd(sum, 1);
  atomicMax(spread + threadIdx.x, 3);
}

TEST_CASE("an atomic is one request of the lanes that call it, at the caller's line") {
  Device<int> sum(1), spread(32);
  const Kernel& kernel = run([&] { add<<<1, 32>>>(sum.data, spread.data); });
  CHECK(sum.host()[0] == 32);
  CHECK(kernel.sites.size() == 2);
  CHECK(sum_of(Space::global, Kind::atomic, 4).requests == 2);
  CHECK(sum_of(Space::global, Kind::atomic, 4).units == 32 + 4);  // lanes on one word take turns
  for (const Request& r : log().requests) CHECK(owner_of(r.pc) == Owner::student);
}

__global__ void publish(int* data, int* flag) {
  data[threadIdx.x] = 1;
  __threadfence();
  atomicExch(flag, 1);
  cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(2, cuda::memory_order_release);
  data[threadIdx.x] = cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(cuda::memory_order_acquire);
}

TEST_CASE("stores come before the fence that follows them, and orders are reported") {
  Device<int> data(32), flag(1);
  run([&] { publish<<<1, 32>>>(data.data, flag.data); });
  const std::vector<std::string> expected = {"store", "fence", "atomic", "store", "load", "store"};
  std::string told;
  for (const std::string& event : log().order) told += event + " ";
  CAPTURE(told);
  CHECK(log().order == expected);
  REQUIRE(log().requests.size() == 5);
  CHECK_FALSE(log().requests[1].releases);
  CHECK(log().requests[1].overwrites);
  CHECK(log().requests[2].releases);
  CHECK(log().requests[2].overwrites);
  CHECK_FALSE(log().requests[0].overwrites);
  CHECK(log().requests[3].acquires);
  CHECK(log().requests[4].stored != nullptr);
}

__global__ void meet_in_memory(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int s[64];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  s[threadIdx.x] = threadIdx.x;
  barrier.arrive_and_wait();
  out[threadIdx.x] = s[63 - threadIdx.x];
}

TEST_CASE("a barrier in memory releases and acquires; its own word is nobody's access") {
  Device<int> out(64);
  run([&] { meet_in_memory<<<1, 64>>>(out.data); });
  CHECK(out.host()[5] == 58);
  CHECK(sum_of(Space::shared, Kind::store, 4).requests == 2);
  CHECK(sum_of(Space::shared, Kind::load, 4).requests == 2);
  CHECK(sum_of(Space::shared, Kind::atomic, 8).requests == 0);
  size_t released = 0, acquired = 0;
  for (size_t i = 0; i < log().order.size(); ++i) {
    if (log().order[i] == "release") released = i;
    if (log().order[i] == "acquire" && !acquired) acquired = i;
  }
  CHECK(released > 0);
  CHECK(acquired > released);
}

__global__ void copy_asynchronously(const float4* in, float4* out) {
  __shared__ float4 tile[32];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], 16);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = tile[threadIdx.x];
}

TEST_CASE("an asynchronous copy is a load and a store that say so, and it lands") {
  Device<float4> in(32), out(32);
  run([&] { copy_asynchronously<<<1, 32>>>(in.data, out.data); });
  unsigned async = 0;
  for (const Request& r : log().requests) async += r.is_async && r.size == 16 && r.mask == ~0u;
  CHECK(async == 2);
  CHECK(log().landed_bytes == 512);
}

// --- Nothing hangs ---------------------------------------------------------------------------------------------------

__global__ void lock_and_wait(int* lock, int* sum, volatile int* flag) {
  for (bool done = false; !done;) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *sum += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
  if (threadIdx.x == 0) {  // the first lane waits for the last, in its own warp
    while (*flag != int(blockIdx.x) + 1) {
    }
  }
  if (threadIdx.x == blockDim.x - 1) *flag = int(blockIdx.x) + 1;
}

__global__ void spin_plainly(const int* flag, int* out) {
  if (threadIdx.x == 1) {
    while (__ldcv(flag) == 0) {
    }
  }
  if (threadIdx.x == 40) *const_cast<int*>(flag) = 1;
  out[threadIdx.x] = 1;
}

TEST_CASE("locks and flags inside a warp and among warps are got and seen") {
  Device<int> lock(1), sum(1), flag(1), out(64);
  for (const char* order : {"forward", "reversed", "11"}) {
    Environment environment("SIMT_ORDER", order);
    cudaMemset(sum.data, 0, sizeof(int));
    cudaMemset(flag.data, 0, sizeof(int));
    run([&] { lock_and_wait<<<4, 64>>>(lock.data, sum.data, flag.data); });
    CHECK(sum.host()[0] == 256);
    cudaMemset(flag.data, 0, sizeof(int));
    run([&] { spin_plainly<<<1, 64>>>(flag.data, out.data); });
    CHECK(out.host()[1] == 1);
  }
}

// --- Faults ----------------------------------------------------------------------------------------------------------

__global__ void read_at(const int* data, int i, int* out) { out[0] = data[i]; }
__global__ void read_shared_at(int i, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = 0;
  const int* first = s;  // the compiler knows no size of what it points to
  out[0] = first[i];
}
__global__ void read_bytes_at(const char* data, int byte, int* out) {
  out[0] = *reinterpret_cast<const int*>(data + byte);
}
__global__ void two_barriers(int* out) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  out[0] = 1;
}
constexpr int kFirstBarrier = __LINE__ - 5;
__global__ void shuffle_with_others(int* out) {
  if (threadIdx.x < 16) out[0] = __shfl_sync(~0u, 1, 0);
}

template <class Launch>
Observer::Fault fault_in(cudaError_t error, Launch launch) {
  log() = Log();
  fault_of(error, launch);
  REQUIRE(log().faults.size() == 1);
  return log().faults.front();
}

TEST_CASE("accesses one element beyond what there is") {
  const auto with = [](auto launch) {
    int *data, *out;
    cudaMalloc(&data, 100);  // no multiple of the 256 bytes that an allocation takes
    cudaMalloc(&out, 4);
    launch(data, out);
  };
  Observer::Fault fault =
      fault_in(cudaErrorIllegalAddress, [&] { with([](int* data, int* out) { read_at<<<1, 1>>>(data, 25, out); }); });
  CHECK(fault.kind == FaultKind::out_of_bounds);
  CHECK(contains(fault.file, "core_test.cu"));
  CHECK(contains(fault.sentence, "just past the end"));
  fault =
      fault_in(cudaErrorIllegalAddress, [&] { with([](int* data, int* out) { read_at<<<1, 1>>>(data, -1, out); }); });
  CHECK(contains(fault.sentence, "before the start"));
  fault = fault_in(cudaErrorIllegalAddress, [&] { with([](int*, int* out) { read_shared_at<<<1, 32>>>(32, out); }); });
  CHECK(fault.kind == FaultKind::out_of_shared);
  CHECK(contains(fault.sentence, "shared memory"));
  fault = fault_in(cudaErrorMisalignedAddress, [&] {
    with([](int* data, int* out) { read_bytes_at<<<1, 1>>>(reinterpret_cast<char*>(data), 6, out); });
  });
  CHECK(fault.kind == FaultKind::misaligned);
}

TEST_CASE("barriers and masks, with both lines") {
  Environment order("SIMT_ORDER", "forward");  // which of the two comes first
  const auto with = [](auto launch) {
    int* out;
    cudaMalloc(&out, 4);
    launch(out);
  };
  Observer::Fault fault =
      fault_in(cudaErrorLaunchFailure, [&] { with([](int* out) { two_barriers<<<1, 64>>>(out); }); });
  CHECK(fault.kind == FaultKind::diverged);
  CHECK(fault.line == kFirstBarrier + 2);
  CHECK(fault.other_line == kFirstBarrier);
  fault = fault_in(cudaErrorLaunchFailure, [&] { with([](int* out) { shuffle_with_others<<<1, 32>>>(out); }); });
  CHECK(fault.kind == FaultKind::left);
}
