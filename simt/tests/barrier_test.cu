// Block barriers and their votes, and the barriers in memory: cuda::barrier and __mbarrier_t.
#include "testing.h"

#include <cooperative_groups.h>
#include <cuda_awbarrier_primitives.h>
#include <cuda/barrier>
#include <cuda/std/chrono>
#include <cuda/std/utility>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// --- __syncthreads -------------------------------------------------------------------------------------------------

__global__ void votes(int* out, int threshold) {
  const int t = int(threadIdx.x), n = int(blockDim.x);
  const int predicate = t < threshold ? t + 1 : 0;
  out[t] = __syncthreads_count(predicate);
  out[n + t] = __syncthreads_and(predicate);
  out[2 * n + t] = __syncthreads_or(predicate);
}

// After the last vote the threads exit one after another.
__global__ void votes_of_the_rest(int* out, int exiting) {
  const int t = int(threadIdx.x), n = int(blockDim.x);
  if (t < exiting) return;
  out[t] = __syncthreads_count(1);
  out[n + t] = __syncthreads_or(t == n - 1);
  out[2 * n + t] = __syncthreads_and(1);
}

TEST_CASE("barriers that vote") {
  for (const int threads : {1, 31, 64, 100, 1024})
    for (const int threshold : {0, 1, 17, threads - 1, threads}) {
      Device<int> out(size_t(3 * threads));
      votes<<<1, threads>>>(out.data, threshold);
      const auto got = out.host();
      int wrong = 0;
      for (int t = 0; t < threads; ++t) {
        wrong += got[size_t(t)] != std::min(threshold, threads);
        wrong += (got[size_t(threads + t)] != 0) != (threshold >= threads);
        wrong += (got[size_t(2 * threads + t)] != 0) != (threshold > 0);
      }
      CHECK(wrong == 0);
    }
}

#ifdef __SIMT__
TEST_CASE("threads that have exited have no vote, and those that are left may exit one after another") {
  Environment volta("SIMT_EXITED", "arrive");
  Device<int> out(3 * 64, -1);
  votes_of_the_rest<<<1, 64>>>(out.data, 10);
  const auto got = out.host();
  for (int i = 0; i < 3 * 64; ++i) CHECK(got[size_t(i)] == (i % 64 < 10 ? -1 : i / 64 == 0 ? 54 : 1));
}
#endif

__global__ void rotate(int* out, int rounds) {
  __shared__ int s[96];
  const int t = int(threadIdx.x + blockDim.x * threadIdx.y);
  s[t] = t;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int next = s[(t + 1) % 96];
    __syncthreads();
    s[t] = next;
  }
  out[blockIdx.x * 96 + t] = s[t];
}

TEST_CASE("barriers in a loop, over a block of two dimensions") {
  Device<int> out(5 * 96);
  rotate<<<5, dim3(12, 8)>>>(out.data, 100);
  const auto got = out.host();
  for (int i = 0; i < 5 * 96; ++i) CHECK(got[size_t(i)] == (i % 96 + 100) % 96);
}

// --- cuda::barrier -------------------------------------------------------------------------------------------------

__global__ void split_barrier(int* out, int rounds) {
  __shared__ block_barrier bar;
  __shared__ int s[64];
  const int t = int(threadIdx.x);
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    s[t] = t * (round + 1);
    auto token = bar.arrive();
    sum += 1;  // work that needs no one
    bar.wait(cuda::std::move(token));
    sum += s[(t + 13) % 64];
    bar.arrive_and_wait();
  }
  out[t] = sum;
}

TEST_CASE("cuda::barrier splits arriving and waiting") {
  Device<int> out(64);
  split_barrier<<<1, 64>>>(out.data, 20);
  const auto got = out.host();
  for (int t = 0; t < 64; ++t) CHECK(got[size_t(t)] == 20 + (t + 13) % 64 * 210);
}

// Producer warps fill buffers that a consumer warp empties: a pair of barriers for each buffer.
__global__ void producer_consumer(const int* in, int* out, int batches) {
  __shared__ block_barrier ready[2], filled[2];
  __shared__ int buffer[2][64];
  const int t = int(threadIdx.x);
  if (t < 4) init((t < 2 ? ready : filled) + t % 2, blockDim.x);
  __syncthreads();
  if (t < 64) {
    for (int i = 0; i < batches; ++i) {
      ready[i % 2].arrive_and_wait();
      buffer[i % 2][t] = in[64 * i + t];
      (void)filled[i % 2].arrive();
    }
  } else {
    (void)ready[0].arrive();
    (void)ready[1].arrive();
    for (int i = 0; i < batches; ++i) {
      filled[i % 2].arrive_and_wait();
      for (int k = t - 64; k < 64; k += 32) out[64 * i + k] = 2 * buffer[i % 2][k];
      (void)ready[i % 2].arrive();
    }
  }
}

TEST_CASE("warps of one block produce and consume") {
  std::vector<int> in(64 * 10);
  for (size_t i = 0; i < in.size(); ++i) in[i] = int(i * 7);
  Device<int> device_in(in), out(in.size());
  producer_consumer<<<1, 96>>>(device_in.data, out.data, 10);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (int& i : in) i *= 2;
  CHECK(out.host() == in);
}

__global__ void drop_out(int* out) {
  __shared__ block_barrier bar;
  __shared__ int phase;
  const int t = int(threadIdx.x);
  if (t == 0) {
    init(&bar, blockDim.x);
    phase = 0;
  }
  __syncthreads();
  for (int round = 0; round < 32; ++round) {
    if (round == t) {
      bar.arrive_and_drop();
      out[t] = phase;
      return;
    }
    bar.arrive_and_wait();
    if (t == 31) phase = round + 1;  // only when round < 31
    bar.arrive_and_wait();
  }
}

TEST_CASE("threads drop out of a cuda::barrier one after another") {
  Device<int> out(32, -1);
  drop_out<<<1, 32>>>(out.data);
  CHECK(out.host()[0] == 0);
}

__global__ void drop_half(int* out) {
  __shared__ block_barrier bar;
  __shared__ int s[64];
  const int t = int(threadIdx.x);
  if (t == 0) init(&bar, 64);
  __syncthreads();
  s[t] = t;
  if (t % 2) {
    bar.arrive_and_drop();
    return;
  }
  bar.arrive_and_wait();
  int sum = s[t] + s[t + 1];
  bar.arrive_and_wait();  // expects the even threads only
  s[t] = sum;
  bar.arrive_and_wait();
  out[t / 2] = s[(t + 2) % 64];
}

TEST_CASE("half the threads drop out of a cuda::barrier") {
  Device<int> out(32);
  drop_half<<<1, 64>>>(out.data);
  for (int i = 0; i < 32; ++i) CHECK(out.host()[size_t(i)] == (2 * i + 2) % 64 * 2 + 1);
}

struct CountPhases {
  int* phases;
  __device__ void operator()() const { *phases += 1; }
};

__global__ void completion(int* phases, int* seen) {
  using Barrier = cuda::barrier<cuda::thread_scope_block, CountPhases>;
  __shared__ alignas(Barrier) unsigned char memory[sizeof(Barrier)];
  Barrier& bar = *reinterpret_cast<Barrier*>(memory);
  if (threadIdx.x == 0) new (&bar) Barrier(blockDim.x, CountPhases{phases});
  __syncthreads();
  for (int round = 0; round < 5; ++round) {
    bar.arrive_and_wait();
    if (*phases == round + 1) atomicAdd(seen, 1);
    bar.arrive_and_wait();
    if (threadIdx.x == 0) *phases -= 1;
    __syncthreads();
  }
}

TEST_CASE("a completion function runs once a phase, before anyone goes on") {
  Device<int> phases(1), seen(1);
  completion<<<1, 48>>>(phases.data, seen.data);
  CHECK(phases.host()[0] == 5);
  CHECK(seen.host()[0] == 5 * 48);
}

__global__ void parity(int* out) {
  constexpr cuda::std::chrono::nanoseconds now(0);
  __shared__ block_barrier bar;
  const int t = int(threadIdx.x);
  if (t == 0) init(&bar, 1);
  __syncthreads();
  if (t == 0) out[0] = bar.try_wait_parity_for(true, now);   // the phase before the first counts as ended
  if (t == 1) out[1] = bar.try_wait_parity_for(false, now);  // the first has not
  __syncthreads();
  if (t == 2) (void)bar.arrive();
  bar.wait_parity(false);
  __syncthreads();
  if (t == 1) {
    auto token = bar.arrive();
    while (!bar.try_wait_for(cuda::std::move(token), now)) {
    }
    out[2] = bar.try_wait_parity_for(true, now);
  }
}

TEST_CASE("waiting for a phase by its parity") {
  Device<int> out(3, -1);
  parity<<<1, 32>>>(out.data);
  CHECK(out.host() == std::vector<int>{1, 0, 1});
}

__global__ void arrive_for_many(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_system> bar;
  const int t = int(threadIdx.x);
  if (t == 0) init(&bar, 40);
  __syncthreads();
  if (t == 0)
    bar.wait(bar.arrive(33));
  else if (t < 8)
    bar.arrive_and_wait();
  if (t < 8) out[t] = 1;
}

TEST_CASE("one thread arrives for many") {
  Device<int> out(8);
  arrive_for_many<<<1, 32>>>(out.data);
  CHECK(out.host() == std::vector<int>(8, 1));
}

// A barrier in global memory joins the blocks of a cooperative launch.
__global__ void across_blocks(cuda::barrier<cuda::thread_scope_device>* bar, int* data, int* out) {
  if (threadIdx.x == 0) {
    data[blockIdx.x] = int(blockIdx.x) + 1;
    bar->arrive_and_wait();
    int sum = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) sum += data[b];
    out[blockIdx.x] = sum;
  }
}
__global__ void init_across_blocks(cuda::barrier<cuda::thread_scope_device>* bar, int expected) { init(bar, expected); }

TEST_CASE("a cuda::barrier of device scope joins blocks") {
  cuda::barrier<cuda::thread_scope_device>* barrier;
  REQUIRE(cudaMalloc(&barrier, sizeof *barrier) == cudaSuccess);
  Device<int> data(6), out(6);
  init_across_blocks<<<1, 1>>>(barrier, 6);
  void* arguments[] = {&barrier, &data.data, &out.data};
  CHECK(cudaLaunchCooperativeKernel((void*)across_blocks, dim3(6), dim3(32), arguments, 0, nullptr) == cudaSuccess);
  CHECK(out.host() == std::vector<int>(6, 21));
  cudaFree(barrier);
}

// --- Copies that land at a barrier ---------------------------------------------------------------------------------

__global__ void copy_at_barrier(const int* in, int* early, int* out) {
  __shared__ block_barrier bar;
  __shared__ int s[100];
  auto block = cg::this_thread_block();
  const int t = int(threadIdx.x);
  s[t] = -7;
  if (t == 0) init(&bar, blockDim.x);
  block.sync();
  for (int round = 0; round < 3; ++round) {
    cuda::memcpy_async(block, s, in + 100 * round, sizeof(int) * 100, bar);
    auto token = bar.arrive();
    if (round == 0) early[t] = s[t];
    bar.wait(cuda::std::move(token));
    out[100 * round + t] = s[99 - t];
    block.sync();
  }
}

__global__ void copy_each_its_own(const int4* in, int4* out) {
  __shared__ block_barrier bar;
  __shared__ int4 s[64];
  const int t = int(threadIdx.x);
  if (t == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&s[t], &in[t], cuda::aligned_size_t<16>(sizeof(int4)), bar);
  bar.arrive_and_wait();
  out[t] = s[63 - t];
}

TEST_CASE("cuda::memcpy_async lands at the barrier's wait") {
  std::vector<int> in(300);
  for (int i = 0; i < 300; ++i) in[size_t(i)] = 1000 + i;
  Device<int> device_in(in), early(100), out(300);
  copy_at_barrier<<<1, 100>>>(device_in.data, early.data, out.data);
  for (int i = 0; i < 300; ++i) CHECK(out.host()[size_t(i)] == 1000 + i / 100 * 100 + 99 - i % 100);
#ifdef __SIMT__
  CHECK(early.host() == std::vector<int>(100, -7));  // reading before the wait shows
#endif
  Device<int> vectors(in), reversed(256);
  copy_each_its_own<<<1, 64>>>(reinterpret_cast<int4*>(vectors.data), reinterpret_cast<int4*>(reversed.data));
  for (int i = 0; i < 256; ++i) CHECK(reversed.host()[size_t(i)] == 1000 + 4 * (63 - i / 4) + i % 4);
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
__global__ void bulk_copy(const int* in, int* out, int tiles) {
  __shared__ alignas(128) int s[2][128];
  __shared__ block_barrier bar[2];
  const int t = int(threadIdx.x);
  if (t < 2) init(&bar[t], blockDim.x);
  __syncthreads();
  const auto fetch = [&](int tile) {
    if (t == 0) {
      cuda::device::memcpy_async_tx(s[tile % 2], in + 128 * tile, cuda::aligned_size_t<16>(sizeof s[0]), bar[tile % 2]);
      return cuda::device::barrier_arrive_tx(bar[tile % 2], 1, sizeof s[0]);
    }
    return bar[tile % 2].arrive();
  };
  block_barrier::arrival_token token[2];
  token[0] = fetch(0);
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) token[(tile + 1) % 2] = fetch(tile + 1);
    bar[tile % 2].wait(cuda::std::move(token[tile % 2]));
    for (int i = t; i < 128; i += int(blockDim.x)) out[128 * tile + i] = s[tile % 2][127 - i];
    __syncthreads();
  }
}

TEST_CASE("bulk copies deliver the bytes that the barrier expects") {
  std::vector<int> in(128 * 5);
  for (size_t i = 0; i < in.size(); ++i) in[i] = int(3 * i);
  Device<int> device_in(in), out(in.size());
  bulk_copy<<<1, 64>>>(device_in.data, out.data, 5);
  for (int i = 0; i < 640; ++i) CHECK(out.host()[size_t(i)] == 3 * (i / 128 * 128 + 127 - i % 128));
}
#endif

// --- The C functions -----------------------------------------------------------------------------------------------

__global__ void c_barrier(int* out) {
  __shared__ __mbarrier_t bar;
  __shared__ int s[64];
  const int t = int(threadIdx.x);
  if (t == 0) __mbarrier_init(&bar, blockDim.x);
  __syncthreads();
  for (int round = 0; round < 4; ++round) {
    s[t] = t + round;
    const __mbarrier_token_t token = __mbarrier_arrive(&bar);
    while (!__mbarrier_test_wait(&bar, token)) {
    }
    out[t] = s[63 - t];
    __syncthreads();
  }
  if (t == 0) __mbarrier_inval(&bar);
}

TEST_CASE("__mbarrier_t") {
  Device<int> out(64);
  c_barrier<<<1, 64>>>(out.data);
  for (int i = 0; i < 64; ++i) CHECK(out.host()[size_t(i)] == 63 - i + 3);
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kDivergedLine = __LINE__ + 3;
__global__ void two_groups_of_warps(int* out) {
  __shared__ int produced[64];
  const int t = threadIdx.x % 64;
  for (int round = 0; round < 3; ++round) {
    if (threadIdx.x < 64) {
      produced[t] = 10 * round + t;
      __syncthreads();
      __syncthreads();
    } else {
      __syncthreads();
      out[64 * round + t] = produced[63 - t];
      __syncthreads();
    }
  }
}

TEST_CASE("groups of warps may meet at barriers of different lines where that is asked for") {
  Device<int> out(192);
  const std::string text = fault_of(cudaErrorLaunchFailure, [&] { two_groups_of_warps<<<1, 128>>>(out.data); });
  CHECK(contains(text, "SIMT_BARRIERS=any"));
  Environment any("SIMT_BARRIERS", "any");
  Device<int> again(192);
  two_groups_of_warps<<<1, 128>>>(again.data);
  const std::vector<int> found = again.host();
  for (int i = 0; i < 192; ++i) CHECK(found[size_t(i)] == 10 * (i / 64) + 63 - i % 64);
}

__global__ void some_leave_early(int* out, int n) {
  __shared__ int s[96];
  if (int(threadIdx.x) >= n) return;
  s[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = s[n - 1 - int(threadIdx.x)];
}

TEST_CASE("threads that have exited count as arrived where that is asked for") {
  Environment arrive("SIMT_EXITED", "arrive");
  for (const int n : {1, 31, 33, 95}) {
    Device<int> out(96);
    some_leave_early<<<2, 96>>>(out.data, n);
    const std::vector<int> found = out.host();
    for (int i = 0; i < n; ++i) CHECK(found[size_t(i)] == n - 1 - i);
  }
}

__global__ void diverged() {
  if (threadIdx.x < 40)
    __syncthreads();
  else
    __syncthreads_or(1);
}
constexpr int kLoopLine = __LINE__ + 2;
__global__ void uneven_loop() {
  for (unsigned i = 0; i <= threadIdx.x / 32; ++i) __syncthreads();
}
__global__ void one_too_many() {
  __shared__ block_barrier bar;
  if (threadIdx.x != 0) return;
  init(&bar, 31);
  (void)bar.arrive(32);
}
__global__ void not_initialized() {
  __shared__ block_barrier bar;
  bar.arrive_and_wait();
}
__global__ void one_too_few() {
  __shared__ block_barrier bar;
  if (threadIdx.x == 0) init(&bar, 33);
  __syncthreads();
  bar.arrive_and_wait();
}
__global__ void misaligned_copy(const int* in) {
  __shared__ block_barrier bar;
  __shared__ int4 s[4];
  if (threadIdx.x == 0) init(&bar, 1);
  __syncthreads();
  if (threadIdx.x == 0) cuda::memcpy_async(s, reinterpret_cast<const int4*>(in + 1), sizeof s, bar);
}

TEST_CASE("barriers that cannot end, end in a fault") {
  std::string text = fault_of(cudaErrorLaunchFailure, [] { diverged<<<1, 64>>>(); });
  CHECK(contains(text, "barrier_test.cu:"));
  CHECK(contains(text, "diverged"));
  text = fault_of(cudaErrorLaunchFailure, [] { uneven_loop<<<1, 64>>>(); });
  CHECK(contains(text, at_line(__FILE__, kLoopLine)));
  text = fault_of(cudaErrorLaunchFailure, [] { one_too_many<<<1, 32>>>(); });
  CHECK(contains(text, "more threads arrive"));
  CHECK(contains(text, "barrier_test.cu:"));
  text = fault_of(cudaErrorLaunchFailure, [] { not_initialized<<<1, 32>>>(); });
  CHECK(contains(text, "not initialized"));
  text = fault_of(cudaErrorMisalignedAddress, [] {
    int* in;
    CHECK(cudaMalloc(&in, 128) == cudaSuccess);
    misaligned_copy<<<1, 32>>>(in);
  });
  CHECK(contains(text, "aligned"));
  Environment timeout("SIMT_TIMEOUT", "0.5");
  text = fault_of(cudaErrorLaunchTimeout, [] { one_too_few<<<1, 32>>>(); });
  CHECK(contains(text, "one_too_few"));
}
#endif
