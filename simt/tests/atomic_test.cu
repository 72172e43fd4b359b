// Atomics of every kind and type, cuda::atomic, and loads and stores with cache hints.
#include "testing.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/annotated_ptr>
#include <cuda/atomic>
#include <cuda/std/atomic>

#include <algorithm>
#include <numeric>

// Old CUDA programs bring their own; it must not clash.
__device__ float atomicMax(float* address, float value) {
  int old = __float_as_int(*address), assumed;
  do {
    assumed = old;
    old = atomicCAS(reinterpret_cast<int*>(address), assumed, __float_as_int(fmaxf(value, __int_as_float(assumed))));
  } while (assumed != old);
  return __int_as_float(old);
}

// --- Each function against its definition --------------------------------------------------------------------------

template <class T>
struct Result {
  T old, now;
};

// One thread: the old value comes back, the new one is in memory.
template <class T, class Operation>
__global__ void apply(T start, Operation operation, Result<T>* result) {
  result->now = start;
  result->old = operation(&result->now);
}

template <class T, class Operation>
void check(T start, T expected, Operation operation) {
  Device<Result<T>> result(1);
  apply<<<1, 1>>>(start, operation, result.data);
  CHECK(result.host()[0].old == start);
  CHECK(result.host()[0].now == expected);
}

#define CALL(call) [] __device__(auto* p) { return call; }

TEST_CASE("each atomic function does what CUDA's guide says") {
  using ull = unsigned long long;
  check(5, 8, CALL(atomicAdd(p, 3)));
  check(2147483647, -2147483647 - 1, CALL(atomicAdd(p, 1)));
  check(5u, 8u, CALL(atomicAdd(p, 3u)));
  check(5ull, (1ull << 40) + 5, CALL(atomicAdd(p, 1ull << 40)));
  check(0.5f, 3.75f, CALL(atomicAdd(p, 3.25f)));
  check(0.5, 0.75, CALL(atomicAdd(p, 0.25)));
  check(5, 8, CALL(atomicSub(p, -3)));
  check(5u, 4294967295u, CALL(atomicSub(p, 6u)));
  check(5, -9, CALL(atomicExch(p, -9)));
  check(5ull, 9ull, CALL(atomicExch(p, 9ull)));
  check(5.5f, -2.25f, CALL(atomicExch(p, -2.25f)));
  check(5, -7, CALL(atomicMin(p, -7)));
  check(5u, 5u, CALL(atomicMin(p, -7u)));  // a large number
  check(-5ll, -7ll, CALL(atomicMin(p, -7ll)));
  check(5ull, 5ull, CALL(atomicMin(p, -7ull)));
  check(5, 5, CALL(atomicMax(p, -7)));
  check(5u, 4294967289u, CALL(atomicMax(p, -7u)));
  check(-5ll, 1ll << 40, CALL(atomicMax(p, 1ll << 40)));
  check(5ull, ull(-7), CALL(atomicMax(p, -7ull)));
  check(1.5f, 7.0f, CALL(atomicMax(p, 7.0f)));  // this file's own
  check(0b1100, 0b1000, CALL(atomicAnd_block(p, 0b1010)));
  check(0b1100ull << 40, 0b1000ull << 40, CALL(atomicAnd_block(p, 0b1010ull << 40)));
  check(0b1100u, 0b1110u, CALL(atomicOr_system(p, 0b1010u)));
  check(0b1100ll, 0b1110ll, CALL(atomicOr_system(p, 0b1010ll)));
  check(0b1100, 0b0110, CALL(atomicXor(p, 0b1010)));
  check(0b1100ull, 0b0110ull, CALL(atomicXor(p, 0b1010ull)));
  check(3u, 4u, CALL(atomicInc(p, 5)));
  check(5u, 0u, CALL(atomicInc(p, 5)));
  check(9u, 0u, CALL(atomicInc(p, 5)));
  check(3u, 2u, CALL(atomicDec(p, 5)));
  check(0u, 5u, CALL(atomicDec(p, 5)));
  check(9u, 5u, CALL(atomicDec(p, 5)));
  check(5, 9, CALL(atomicCAS(p, 5, 9)));
  check(5, 5, CALL(atomicCAS(p, 4, 9)));
  check(5ull, 9ull << 40, CALL(atomicCAS(p, 5ull, 9ull << 40)));
  using halfword = unsigned short;
  check(halfword(65535), halfword(1), CALL(atomicCAS(p, halfword(65535), halfword(1))));
  check(halfword(65535), halfword(65535), CALL(atomicCAS(p, halfword(0), halfword(1))));
}

// --- Many threads --------------------------------------------------------------------------------------------------

struct Sums {
  int i;
  unsigned u;
  unsigned long long ull;
  float f;
  double d;
  __half h;
  __nv_bfloat16 b;
  __half2 h2;
  __nv_bfloat162 b2;
  float2 f2;
  float4 f4;
};

__global__ void sum_all(Sums* s) {
  atomicAdd(&s->i, -1);
  atomicAdd(&s->u, 2);
  atomicAdd(&s->ull, 1ull << 33);
  atomicAdd(&s->f, 0.5f);
  atomicAdd(&s->d, 0.25);
  atomicAdd(&s->h, __float2half(0.5f));
  atomicAdd(&s->b, __float2bfloat16(0.25f));
  atomicAdd(&s->h2, __floats2half2_rn(0.25f, -0.5f));
  atomicAdd(&s->b2, __floats2bfloat162_rn(0.125f, -0.25f));
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  atomicAdd(&s->f2, make_float2(1, 2));
  atomicAdd(&s->f4, make_float4(1, 2, 3, 4));
#endif
}

TEST_CASE("atomic sums of every type lose nothing") {
  Device<Sums> sums(1);
  sum_all<<<8, 64>>>(sums.data);
  const Sums s = sums.host()[0];
  CHECK(s.i == -512);
  CHECK(s.u == 1024);
  CHECK(s.ull == 512ull << 33);
  CHECK(s.f == 256);
  CHECK(s.d == 128);
  CHECK(__half2float(s.h) == 256);
  CHECK(__bfloat162float(s.b) == 64);  // 64 + 0.25 rounds to 64
  CHECK(__low2float(s.h2) == 128);
  CHECK(__high2float(s.h2) == -256);
  CHECK(__low2float(s.b2) == 32);
  CHECK(__high2float(s.b2) == -64);
  CHECK(s.f2.x == 512);
  CHECK(s.f2.y == 1024);
  CHECK(s.f4.x == 512);
  CHECK(s.f4.w == 2048);
}

__global__ void histogram(const unsigned char* in, int n, unsigned* out) {
  __shared__ unsigned bins[256];
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (int i = int(blockIdx.x * blockDim.x + threadIdx.x); i < n; i += int(gridDim.x * blockDim.x))
    atomicAdd(&bins[in[i]], 1u);
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&out[i], bins[i]);
}

TEST_CASE("a histogram in shared, then global memory") {
  std::vector<unsigned char> in(10001);
  for (size_t i = 0; i < in.size(); ++i) in[i] = (unsigned char)(i * i % 251);
  std::vector<unsigned> expected(256);
  for (const unsigned char c : in) ++expected[c];
  Device<unsigned char> device_in(in);
  Device<unsigned> out(256);
  histogram<<<7, 96>>>(device_in.data, int(in.size()), out.data);
  CHECK(out.host() == expected);
}

__global__ void take_tickets(int* next, int* owner, int n) {
  const int ticket = atomicAdd(next, 1);
  if (ticket < n) owner[ticket] += 1;
}

TEST_CASE("every old value is seen once") {
  Device<int> next(1), owner(4000);
  take_tickets<<<40, 100>>>(next.data, owner.data, 4000);
  CHECK(owner.host() == std::vector<int>(4000, 1));
}

__global__ void harmonic(float* sum, double* sum_double) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(sum, 1.0f / float(i + 1));
  atomicAdd(sum_double, 1.0 / double(i + 1));
}

#ifdef __SIMT__
TEST_CASE("float sums repeat to the bit on any number of workers") {
  const auto sums = [](const char* workers) {
    Environment environment("SIMT_WORKERS", workers);
    Device<float> sum(1);
    Device<double> sum_double(1);
    harmonic<<<100, 64>>>(sum.data, sum_double.data);
    return std::make_pair(sum.host()[0], sum_double.host()[0]);
  };
  const auto one = sums("1");
  CHECK(one == sums("2"));
  CHECK(one == sums("3"));
}
#endif

// A lock per bin, held while another lane of the same warp may want it.
__global__ void locked_sums(int* locks, int* sums) {
  const int bin = int(threadIdx.x) % 3;
  bool done = false;
  while (!done) {
    if (atomicCAS(&locks[bin], 0, 1) == 0) {
      sums[bin] += 1;
      __threadfence();
      atomicExch(&locks[bin], 0);
      done = true;
    }
  }
}

TEST_CASE("locks among lanes of a warp and among blocks") {
  Device<int> locks(3), sums(3);
  locked_sums<<<10, 96>>>(locks.data, sums.data);
  CHECK(sums.host() == std::vector<int>(3, 320));
}

// The last block to finish adds up what the others left.
__global__ void sum_with_last_block(const int* in, int* partial, unsigned* finished, int* out) {
  __shared__ bool last;
  int sum = in[blockIdx.x * 32 + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = sum;
    __threadfence();
    last = atomicInc(finished, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int total = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) total += partial[b];
    *out = total;
  }
}

TEST_CASE("a counter that wraps shows which block is the last") {
  std::vector<int> in(32 * 77);
  std::iota(in.begin(), in.end(), 0);
  Device<int> device_in(in), partial(77), out(1);
  Device<unsigned> finished(1);
  for (int round = 0; round < 3; ++round) {
    cudaMemset(out.data, 0, sizeof(int));
    sum_with_last_block<<<77, 32>>>(device_in.data, partial.data, finished.data, out.data);
    CHECK(out.host()[0] == std::accumulate(in.begin(), in.end(), 0));
    CHECK(finished.host()[0] == 0);
  }
}

// One thread sets a flag that the others poll through a fence.
__global__ void flag_after_data(volatile int* data, volatile int* flag, int* seen) {
  if (threadIdx.x == blockDim.x - 1) {
    *data = 42;
    __threadfence();
    *flag = 1;
  } else {
    while (*flag == 0) __threadfence();
    seen[threadIdx.x] = *data;
  }
}

TEST_CASE("a lane that polls with a fence lets the writer run") {
  Device<int> data(1), flag(1), seen(64);
  flag_after_data<<<1, 64>>>(data.data, flag.data, seen.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  auto expected = std::vector<int>(64, 42);
  expected[63] = 0;
  CHECK(seen.host() == expected);
}

// --- cuda::atomic --------------------------------------------------------------------------------------------------

struct Counters {
  cuda::atomic<int, cuda::thread_scope_device> count;
  cuda::atomic<float> sum;
  cuda::std::atomic<unsigned long long> bits;
  int plain;
};

__global__ void count(Counters* c) {
  const int t = int(threadIdx.x);
  c->count.fetch_add(1, cuda::std::memory_order_relaxed);
  ++c->count;
  c->count += 2;
  c->count--;
  c->sum.fetch_add(0.5f);
  c->bits |= 1ull << t;
  cuda::atomic_ref<int, cuda::thread_scope_device> plain(c->plain);
  plain.fetch_max(t);
  int expected = c->count.load();
  while (!c->count.compare_exchange_weak(expected, expected + 10)) {
  }
}

__global__ void pass_baton(cuda::atomic<int, cuda::thread_scope_block>* turn, int* order) {
  const int me = int(blockDim.x - 1 - threadIdx.x);
  while (turn->load(cuda::memory_order_acquire) != me) {
  }
  order[me] = int(threadIdx.x);
  turn->store(me + 1, cuda::memory_order_release);
  turn->notify_all();
}

__global__ void wait_for_change(cuda::atomic<int>* flag, int* seen) {
  if (threadIdx.x == 40) {
    flag->store(7);
    flag->notify_all();
  }
  flag->wait(0);
  seen[threadIdx.x] = *flag;
}

TEST_CASE("cuda::atomic and cuda::atomic_ref") {
  Device<Counters> counters(1);
  count<<<4, 48>>>(counters.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  struct Plain {
    int count;
    float sum;
    unsigned long long bits;
    int plain;
  } got;
  static_assert(sizeof got == sizeof(Counters), "atomics are as large as their values");
  cudaMemcpy(&got, counters.data, sizeof got, cudaMemcpyDeviceToHost);
  CHECK(got.count == 4 * 48 * (1 + 1 + 2 - 1 + 10));
  CHECK(got.sum == 96);
  CHECK(got.bits == (1ull << 48) - 1);
  CHECK(got.plain == 47);

  Device<int> turn(1), order(70), seen(64);
  pass_baton<<<1, 70>>>(reinterpret_cast<cuda::atomic<int, cuda::thread_scope_block>*>(turn.data), order.data);
  for (int i = 0; i < 70; ++i) CHECK(order.host()[size_t(i)] == 69 - i);

  Device<int> flag(1);
  wait_for_change<<<1, 64>>>(reinterpret_cast<cuda::atomic<int>*>(flag.data), seen.data);
  CHECK(seen.host() == std::vector<int>(64, 7));
}

TEST_CASE("cuda::atomic works in host code too") {
  cuda::atomic<int> counter(5);
  CHECK(counter.fetch_add(3) == 5);
  CHECK(++counter == 9);
  int expected = 8;
  CHECK(!counter.compare_exchange_strong(expected, 1));
  CHECK(expected == 9);
  CHECK(counter.exchange(2) == 9);
  counter = 4;
  CHECK(counter == 4);
  cuda::std::atomic_flag flag;
  flag.clear();
  CHECK(!flag.test_and_set());
  CHECK(flag.test_and_set());
}

// --- Cache hints ---------------------------------------------------------------------------------------------------

template <class T>
__global__ void load_and_store(const T* in, T* out) {
  __stwb(out, __ldg(in));
  __stcg(out + 1, __ldcg(in + 1));
  __stcs(out + 2, __ldcs(in + 2));
  __stwt(out + 3, __ldca(in + 3));
  out[4] = __ldcv(in + 4);
  out[5] = __ldlu(in + 5);
  out[6] = *cuda::associate_access_property(in + 6, cuda::access_property::persisting{});
  cuda::annotated_ptr<T, cuda::access_property::streaming> rest(out + 7);
  rest[0] = cuda::annotated_ptr<const T, cuda::access_property>(in, cuda::access_property::normal{})[7];
}

template <class T>
void check_hints() {
  std::vector<unsigned char> bytes(8 * sizeof(T));
  std::iota(bytes.begin(), bytes.end(), (unsigned char)1);
  Device<unsigned char> in(bytes), out(bytes.size());
  load_and_store<<<1, 1>>>(reinterpret_cast<const T*>(in.data), reinterpret_cast<T*>(out.data));
  CHECK(out.host() == bytes);
}

TEST_CASE("loads and stores with cache hints, of every type") {
  check_hints<char>();
  check_hints<unsigned char>();
  check_hints<short>();
  check_hints<int>();
  check_hints<unsigned>();
  check_hints<long>();
  check_hints<long long>();
  check_hints<float>();
  check_hints<double>();
  check_hints<char4>();
  check_hints<uchar2>();
  check_hints<short4>();
  check_hints<ushort2>();
  check_hints<int2>();
  check_hints<int4>();
  check_hints<uint4>();
  check_hints<longlong2>();
  check_hints<float2>();
  check_hints<float4>();
  check_hints<double2>();
  check_hints<__half>();
  check_hints<__half2>();
  check_hints<__nv_bfloat16>();
  check_hints<__nv_bfloat162>();
}

__device__ int in_global;

__global__ void spaces(int* out, unsigned long long* addresses) {
  __shared__ int in_shared;
  int local = 0;
  out[0] = int(__isShared(&in_shared));
  out[1] = int(__isShared(&in_global));
  out[2] = int(__isShared(&local));
  out[3] = int(__isShared(out));
  addresses[0] = __cvta_generic_to_global(out) - reinterpret_cast<unsigned long long>(out);
  out[4] = __cvta_shared_to_generic(__cvta_generic_to_shared(&in_shared)) == &in_shared;
}

TEST_CASE("address spaces") {
  Device<int> out(5);
  Device<unsigned long long> addresses(1);
  spaces<<<1, 1>>>(out.data, addresses.data);
  CHECK(out.host() == std::vector<int>{1, 0, 0, 0, 1});
  CHECK(addresses.host()[0] == 0);
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kMisalignedLine = __LINE__ + 1;
__global__ void misaligned(char* p) { atomicAdd(reinterpret_cast<int*>(p + 2), 1); }
constexpr int kTrapLine = __LINE__ + 2;
__global__ void trap_in_block_3() {
  if (blockIdx.x == 3) __trap();
}
__global__ void atomic_on_null() { atomicAdd(static_cast<int*>(nullptr), 1); }

TEST_CASE("faults of atomics and traps name the line") {
  std::string text = fault_of(cudaErrorMisalignedAddress, [] {
    char* p;
    CHECK(cudaMalloc(&p, 16) == cudaSuccess);
    misaligned<<<1, 1>>>(p);
  });
  CHECK(contains(text, at_line(__FILE__, kMisalignedLine)));
  text = fault_of(cudaErrorLaunchFailure, [] { trap_in_block_3<<<8, 32>>>(); });
  CHECK(contains(text, at_line(__FILE__, kTrapLine)));
  CHECK(contains(text, "block (3,0,0)"));
  text = fault_of(cudaErrorIllegalAddress, [] { atomic_on_null<<<1, 1>>>(); });
  CHECK(contains(text, "atomic_on_null"));
}
#endif
