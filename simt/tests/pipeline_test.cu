// Asynchronous copies in batches: the C functions of cuda_pipeline.h, and cuda::pipeline of a thread and of a block.
#include "testing.h"

#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda/pipeline>

#include <numeric>

#pragma nv_diag_suppress static_var_with_dynamic_init

namespace cg = cooperative_groups;

std::vector<float> counting(int n) {
  std::vector<float> in(static_cast<size_t>(n));
  std::iota(in.begin(), in.end(), 100.0f);
  return in;
}

// --- The C functions -----------------------------------------------------------------------------------------------

// out[size][zero_fill][byte]: what is in shared memory after a copy of each size and each number of zeros.
template <int Size>
__global__ void copies(const char* in, char* out) {
  __shared__ __align__(16) char s[17][16];
  const int t = int(threadIdx.x);
  for (int i = 0; i < 16; ++i) s[t][i] = 77;
  if (t <= Size) __pipeline_memcpy_async(s[t], in + 16 * t, Size, size_t(t));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  for (int i = 0; i < 16; ++i) out[16 * t + i] = s[t][i];
}

template <int Size>
void check_copies() {
  std::vector<char> in(17 * 16);
  std::iota(in.begin(), in.end(), char(1));
  Device<char> device_in(in), out(in.size());
  copies<Size><<<1, 17>>>(device_in.data, out.data);
  const auto got = out.host();
  for (int t = 0; t < 17; ++t)
    for (int i = 0; i < 16; ++i) {
      const char expected = t > Size || i >= Size ? char(77) : i >= Size - t ? char(0) : in[size_t(16 * t + i)];
      CHECK(got[size_t(16 * t + i)] == expected);
    }
}

TEST_CASE("copies of 4, 8 and 16 bytes, the last of them zeros") {
  check_copies<4>();
  check_copies<8>();
  check_copies<16>();
}

__global__ void three_batches(const int* in, int* seen) {
  __shared__ int s[3];
  for (int i = 0; i < 3; ++i) s[i] = -1;
  const auto look = [&](int step) {
    for (int i = 0; i < 3; ++i) seen[3 * step + i] = s[i];
  };
  for (int i = 0; i < 3; ++i) {
    __pipeline_memcpy_async(&s[i], &in[i], 4);
    if (i < 2) __pipeline_commit();
  }
  look(0);
  __pipeline_wait_prior(1);
  look(1);
  __pipeline_wait_prior(0);  // the third copy is not committed
  look(2);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  look(3);
  __pipeline_wait_prior(0);
  look(4);
}

TEST_CASE("a batch lands at the wait that covers it") {
  Device<int> in(std::vector<int>{10, 20, 30}), seen(15);
  three_batches<<<1, 1>>>(in.data, seen.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
#ifdef __SIMT__  // a GPU may be early
  CHECK(seen.host() == std::vector<int>{-1, -1, -1, 10, -1, -1, 10, 20, -1, 10, 20, -1, 10, 20, 30});
#endif
}

// A tile for each thread and stage, as in the tiled matrix multiplications of CUDA's samples.
template <int Stages>
__global__ void staged_sum(const float4* in, float* out, int tiles) {
  __shared__ float4 s[Stages][64];
  const unsigned t = threadIdx.x;
  const auto fetch = [&](int tile) {
    if (tile < tiles) __pipeline_memcpy_async(&s[tile % Stages][t], &in[64 * tile + int(t)], sizeof(float4));
    __pipeline_commit();
  };
  for (int tile = 0; tile < Stages - 1; ++tile) fetch(tile);
  float sum = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    fetch(tile + Stages - 1);
    __pipeline_wait_prior(Stages - 1);
    __syncthreads();
    const float4 v = s[tile % Stages][63 - t];
    sum += v.x + 2 * v.y + 3 * v.z + 4 * v.w;
    __syncthreads();
  }
  out[t] = sum;
}

template <int Stages>
void check_staged_sum() {
  constexpr int kTiles = 9;
  const auto in = counting(kTiles * 64 * 4);
  Device<float> device_in(in), out(64);
  staged_sum<Stages><<<1, 64>>>(reinterpret_cast<const float4*>(device_in.data), out.data, kTiles);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  for (int t = 0; t < 64; ++t) {
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const float* v = &in[size_t(4 * (64 * tile + 63 - t))];
      sum += v[0] + 2 * v[1] + 3 * v[2] + 4 * v[3];
    }
    CHECK(out.host()[size_t(t)] == sum);
  }
}

TEST_CASE("pipelines of one to four stages") {
  check_staged_sum<1>();
  check_staged_sum<2>();
  check_staged_sum<3>();
  check_staged_sum<4>();
}

// --- cuda::pipeline ------------------------------------------------------------------------------------------------

__global__ void thread_pipeline(const float* in, float* out, float* early, int tiles) {
  __shared__ float s[2][96];
  const int t = int(threadIdx.x);
  s[0][t] = -7;
  cuda::pipeline<cuda::thread_scope_thread> pipe = cuda::make_pipeline();
  const auto fetch = [&](int tile) {
    pipe.producer_acquire();
    cuda::memcpy_async(&s[tile % 2][t], &in[96 * tile + t], sizeof(float), pipe);
    pipe.producer_commit();
  };
  fetch(0);
  early[t] = s[0][t];
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) fetch(tile + 1);
    pipe.consumer_wait();
    __syncthreads();
    out[96 * tile + t] = s[tile % 2][95 - t];
    __syncthreads();
    pipe.consumer_release();
  }
}

__global__ void prior_batches(const int* in, int* out) {
  __shared__ int s[3];
  auto pipe = cuda::make_pipeline();
  for (int i = 0; i < 3; ++i) {
    s[i] = -1;
    pipe.producer_acquire();
    cuda::memcpy_async(&s[i], &in[i], cuda::aligned_size_t<4>(4), pipe);
    pipe.producer_commit();
  }
  cuda::pipeline_consumer_wait_prior<1>(pipe);
  for (int i = 0; i < 3; ++i) out[i] = s[i];
  pipe.consumer_wait();
  for (int i = 0; i < 3; ++i) out[3 + i] = s[i];
}

TEST_CASE("the pipeline of one thread") {
  constexpr int kTiles = 5;
  const auto in = counting(96 * kTiles);
  Device<float> device_in(in), out(in.size()), early(96);
  thread_pipeline<<<1, 96>>>(device_in.data, out.data, early.data, kTiles);
  for (int i = 0; i < 96 * kTiles; ++i) CHECK(out.host()[size_t(i)] == in[size_t(i / 96 * 96 + 95 - i % 96)]);
  Device<int> three(std::vector<int>{10, 20, 30}), landed(6);
  prior_batches<<<1, 1>>>(three.data, landed.data);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
#ifdef __SIMT__
  CHECK(early.host() == std::vector<float>(96, -7));
  CHECK(landed.host() == std::vector<int>{10, 20, -1, 10, 20, 30});
#endif
}

template <int Stages>
__global__ void block_pipeline(const float* in, float* out, int tiles) {
  __shared__ float s[Stages][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, Stages> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const int t = int(threadIdx.x);
  int fetched = 0;
  for (int tile = 0; tile < tiles; ++tile) {
    for (; fetched < tiles && fetched < tile + Stages; ++fetched) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetched % Stages], in + 128 * fetched, sizeof s[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    for (int i = t; i < 128; i += int(blockDim.x)) out[128 * tile + i] = 2 * s[tile % Stages][127 - i];
    pipe.consumer_release();
  }
}

template <int Stages>
void check_block_pipeline() {
  constexpr int kTiles = 11;
  const auto in = counting(128 * kTiles);
  Device<float> device_in(in), out(in.size());
  block_pipeline<Stages><<<1, 64>>>(device_in.data, out.data, kTiles);
  for (int i = 0; i < 128 * kTiles; ++i) CHECK(out.host()[size_t(i)] == 2 * in[size_t(i / 128 * 128 + 127 - i % 128)]);
}

TEST_CASE("the pipeline of a block") {
  check_block_pipeline<1>();
  check_block_pipeline<2>();
  check_block_pipeline<4>();
}

// One warp fetches, three compute.
template <bool ByRole>
__global__ void specialized(const float* in, float* out, int tiles) {
  constexpr int kStages = 3;
  __shared__ float s[kStages][96];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  const bool producer = block.thread_rank() < 32;
  const auto role = producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = ByRole ? cuda::make_pipeline(block, &state, role) : cuda::make_pipeline(block, &state, size_t(32));
  if (producer) {
    for (int tile = 0; tile < tiles; ++tile) {
      pipe.producer_acquire();
      cuda::memcpy_async(warp, s[tile % kStages], in + 96 * tile, sizeof s[0], pipe);
      pipe.producer_commit();
    }
  } else {
    const int i = int(block.thread_rank()) - 32;
    for (int tile = 0; tile < tiles; ++tile) {
      pipe.consumer_wait();
      out[96 * tile + i] = s[tile % kStages][95 - i] + 1;
      pipe.consumer_release();
    }
  }
}

TEST_CASE("a block whose warps produce and consume") {
  constexpr int kTiles = 20;
  const auto in = counting(96 * kTiles);
  const auto check = [&](auto kernel) {
    Device<float> device_in(in), out(in.size());
    kernel<<<2, 128>>>(device_in.data, out.data, kTiles);
    for (int i = 0; i < 96 * kTiles; ++i) CHECK(out.host()[size_t(i)] == in[size_t(i / 96 * 96 + 95 - i % 96)] + 1);
  };
  check(specialized<true>);
  check(specialized<false>);
}

// --- Faults --------------------------------------------------------------------------------------------------------
#ifdef __SIMT__

constexpr int kCopyLine = __LINE__ + 3;
__global__ void copy(const char* in, size_t offset, size_t size, size_t zeros) {
  __shared__ __align__(16) char s[64];
  __pipeline_memcpy_async(s, in + offset, size, zeros);
}
__global__ void copy_to_global(int* to, const int* from) { __pipeline_memcpy_async(to, from, 4); }
__global__ void copy_from_shared() {
  __shared__ int s[2];
  __pipeline_memcpy_async(&s[0], &s[1], 4);
}
__global__ void misaligned_batch(const float* in) {
  __shared__ float4 s;
  auto pipe = cuda::make_pipeline();
  cuda::memcpy_async(&s, reinterpret_cast<const float4*>(in + 1), sizeof s, pipe);
}
// Reads what has not landed: no fault, but not the data either.
__global__ void without_a_wait(const float* in, float* out) {
  __shared__ float s[32];
  __pipeline_memcpy_async(&s[threadIdx.x], &in[threadIdx.x], 4);
  __pipeline_commit();
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}
__global__ void without_a_producer(float* out) {
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto pipe = cuda::make_pipeline(cg::this_thread_block(), &state);
  pipe.consumer_wait();
  *out = 1;
}

TEST_CASE("copies that cp.async cannot do are faults with the line") {
  const auto launch = [](cudaError_t expected, size_t offset, size_t size, size_t zeros, const char* why) {
    const std::string text = fault_of(expected, [&] {
      char* in;
      CHECK(cudaMalloc(&in, 256) == cudaSuccess);
      copy<<<1, 1>>>(in, offset, size, zeros);
    });
    CHECK(contains(text, at_line(__FILE__, kCopyLine)));
    CHECK(contains(text, why));
  };
  launch(cudaErrorLaunchFailure, 0, 5, 0, "4, 8 or 16");
  launch(cudaErrorLaunchFailure, 0, 0, 0, "4, 8 or 16");
  launch(cudaErrorLaunchFailure, 0, 32, 0, "4, 8 or 16");
  launch(cudaErrorLaunchFailure, 0, 8, 9, "more bytes");
  launch(cudaErrorMisalignedAddress, 4, 16, 0, "aligned");
  launch(cudaErrorMisalignedAddress, 2, 4, 0, "aligned");
  std::string text = fault_of(cudaErrorInvalidAddressSpace, [] {
    int* p;
    CHECK(cudaMalloc(&p, 64) == cudaSuccess);
    copy_to_global<<<1, 1>>>(p, p + 4);
  });
  CHECK(contains(text, "not shared memory"));
  text = fault_of(cudaErrorInvalidAddressSpace, [] { copy_from_shared<<<1, 1>>>(); });
  CHECK(contains(text, "not global memory"));
  text = fault_of(cudaErrorMisalignedAddress, [] {
    float* in;
    CHECK(cudaMalloc(&in, 64) == cudaSuccess);
    misaligned_batch<<<1, 1>>>(in);
  });
  CHECK(contains(text, "pipeline_test.cu:"));
}

TEST_CASE("a missing wait shows") {
  Device<float> in(counting(32)), out(32);
  without_a_wait<<<1, 32>>>(in.data, out.data);
  for (const float value : out.host()) CHECK(value != value);
}

// Two stages that take turns, of which the next copy goes to the one that is still read.
__global__ void one_copy_too_many(const float* in, float* out, int tiles) {
  __shared__ float s[2][32];
  const unsigned t = threadIdx.x;
  for (int ahead = 0; ahead < 2; ++ahead) {
    __pipeline_memcpy_async(&s[ahead][t], &in[32 * ahead + t], 4);
    __pipeline_commit();
  }
  for (int tile = 0; tile < tiles; ++tile) {
    __pipeline_wait_prior(1);
    __syncthreads();
    if (tile + 2 < tiles) __pipeline_memcpy_async(&s[tile % 2][t], &in[32 * (tile + 2) + t], 4);
    __pipeline_commit();
    out[32 * tile + t] = s[tile % 2][31 - t];
    __syncthreads();
  }
}

TEST_CASE("a copy to what is still read shows if copies land early") {
  const auto in = counting(32 * 4);
  Device<float> device_in(in), out(in.size());
  const auto wrong = [&](const char* name, const char* value) {
    Environment environment(name, value);
    one_copy_too_many<<<1, 32>>>(device_in.data, out.data, 4);
    const auto got = out.host();
    int count = 0;
    for (size_t i = 0; i < in.size(); ++i) count += got[i] != in[i / 32 * 32 + 31 - i % 32];
    return count;
  };
  CHECK(wrong("SIMT_COPIES", "late") == 0);
  CHECK(wrong("SIMT_COPIES", "early") > 0);
  Environment order_decides("SIMT_COPIES", nullptr);
  CHECK(wrong("SIMT_ORDER", "forward") == 0);
  CHECK(wrong("SIMT_ORDER", "reversed") > 0);
}

TEST_CASE("a consumer without a producer is stopped") {
  Environment timeout("SIMT_TIMEOUT", "0.5");
  const std::string text = fault_of(cudaErrorLaunchTimeout, [] {
    float* out;
    CHECK(cudaMalloc(&out, 4) == cudaSuccess);
    without_a_producer<<<1, 32>>>(out);
  });
  CHECK(contains(text, "without_a_producer"));
}
#endif
