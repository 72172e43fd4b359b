// Memory pools, cuda::latch and cuda::binary_semaphore, complex numbers, mathematical constants, and NVTX.
#include "testing.h"

#include <cuComplex.h>
#include <math_constants.h>
#include <nvtx3/nvToolsExt.h>
#include <cuda/latch>
#include <cuda/semaphore>

#include <cmath>

__global__ void fill(float* out, float value, int n) {
  for (int i = int(threadIdx.x); i < n; i += int(blockDim.x)) out[i] = value;
}

TEST_CASE("stream-ordered allocation and pools") {
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  cudaMemPool_t standard, pool;
  REQUIRE(cudaDeviceGetDefaultMemPool(&standard, 0) == cudaSuccess);
  float* p = nullptr;
  REQUIRE(cudaMallocAsync(&p, 1000, stream) == cudaSuccess);
  uint64_t used = 0, threshold = 123, got = 0;
  CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 1000);
  CHECK(cudaMemPoolSetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &threshold) == cudaSuccess);
  CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrReleaseThreshold, &got) == cudaSuccess);
  CHECK(got == 123);
  fill<<<1, 32, 0, stream>>>(p, 1, 250);
  CHECK(cudaFreeAsync(p, stream) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaFreeAsync(p, stream));
  CHECK(cudaMemPoolGetAttribute(standard, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 0);

  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  properties.maxSize = 4096;
  REQUIRE(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
  REQUIRE(cudaMallocFromPoolAsync(&p, 4000, pool, stream) == cudaSuccess);
  float* more = nullptr;
  fails(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&more, 4000, pool, stream));
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
  fails(cudaErrorInvalidValue, cudaMallocFromPoolAsync(&p, 4, pool, stream));
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  fails(cudaErrorInvalidResourceHandle, cudaMallocAsync(&p, 4, stream));
}

__global__ void latch_and_semaphore(int* out) {
  __shared__ unsigned char latch_memory[sizeof(cuda::latch<cuda::thread_scope_block>)];
  __shared__ unsigned char semaphore_memory[sizeof(cuda::binary_semaphore<cuda::thread_scope_block>)];
  auto* latch = reinterpret_cast<cuda::latch<cuda::thread_scope_block>*>(latch_memory);
  auto* semaphore = reinterpret_cast<cuda::binary_semaphore<cuda::thread_scope_block>*>(semaphore_memory);
  __shared__ int inside, total;
  const int t = int(threadIdx.x);
  if (t == 0) {
    new (latch) cuda::latch<cuda::thread_scope_block>(blockDim.x);
    new (semaphore) cuda::binary_semaphore<cuda::thread_scope_block>(1);
    inside = total = 0;
  }
  __syncthreads();
  semaphore->acquire();
  inside += 1;
  if (inside == 1) total += 1;
  __nanosleep(10);
  inside -= 1;
  semaphore->release();
  latch->arrive_and_wait();
  if (t == 0) *out = total;
}

TEST_CASE("cuda::latch and cuda::binary_semaphore") {
  Device<int> total(1);
  latch_and_semaphore<<<1, 40>>>(total.data);
  CHECK(total.host()[0] == 40);
}

TEST_CASE("Complex numbers") {
  const cuFloatComplex a = make_cuFloatComplex(1, 2), b = make_cuComplex(3, -4);
  const cuFloatComplex product = cuCmulf(a, b), back = cuCdivf(product, b);
  CHECK(cuCrealf(product) == 11);
  CHECK(cuCimagf(product) == 2);
  CHECK(cuCrealf(back) == doctest::Approx(1));
  CHECK(cuCimagf(back) == doctest::Approx(2));
  CHECK(cuCabsf(b) == 5);
  CHECK(cuCimagf(cuConjf(a)) == -2);
  CHECK(cuCimag(cuCsub(make_cuDoubleComplex(0, 1), cuComplexFloatToDouble(a))) == -1);
  CHECK(cuCreal(cuCfma(make_cuDoubleComplex(0, 1), make_cuDoubleComplex(0, 1), make_cuDoubleComplex(5, 0))) == 4);
  const cuDoubleComplex large = make_cuDoubleComplex(1e300, 1e300);
  CHECK(cuCreal(cuCdiv(large, large)) == doctest::Approx(1));
  CHECK(cuCabs(large) == doctest::Approx(sqrt(2.0) * 1e300));
}

TEST_CASE("mathematical constants, and ranges for a profiler that is not there") {
  CHECK(CUDART_PI_F == 3.14159265f);
  CHECK(std::isnan(CUDART_NAN));
  CHECK(CUDART_INF_F == INFINITY);
  CHECK(nvtxRangePush("range") == nvtxRangePop());
}

// --- nvcc's built-ins for atomics ------------------------------------------------------------------------------------

__global__ void count_by_builtins(unsigned* at, unsigned* seen) {
  __nv_atomic_fetch_add(at, 2, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_max(at + 1, threadIdx.x, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_BLOCK);
  unsigned expected = 0;
  if (__nv_atomic_compare_exchange_n(at + 2, &expected, threadIdx.x + 1, false, __NV_ATOMIC_ACQ_REL,
                                     __NV_ATOMIC_RELAXED))
    __nv_atomic_store_n(at + 3, 77u, __NV_ATOMIC_RELEASE);
  else
    seen[threadIdx.x] = expected;
  if (__nv_atomic_load_n(at + 3, __NV_ATOMIC_ACQUIRE) == 77)
    __nv_atomic_or(at + 4, 1u << threadIdx.x, __NV_ATOMIC_RELAXED);
}

TEST_CASE("__nv_atomic_*") {
  Device<unsigned> at(5), seen(32);
  count_by_builtins<<<1, 32>>>(at.data, seen.data);
  const auto got = at.host(), lanes = seen.host();
  CHECK(got[0] == 64);
  CHECK(got[1] == 31);
  REQUIRE(got[2] >= 1);
  REQUIRE(got[2] <= 32);
  for (unsigned lane = 0; lane < 32; ++lane) CHECK(lanes[lane] == (lane + 1 == got[2] ? 0 : got[2]));
  CHECK(got[4] == ~0u);
}
