// What rms_norm/ and q4_gemm/ both need of CUDA: the architecture of the code that runs, launches with attributes, and
// the instructions of compute capability 9.0 for which CUDA C++ has no name, each with its form for the repository's
// CPU device. Below 9.0, functions that need it do nothing.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cuda/barrier>

// The version of both headers, and of the Python package: major · 10000 + minor · 100 + patch.
#define CUDA_BITS_VERSION 100

namespace cuda_bits {

#ifdef __CUDA_ARCH_LIST__
#define CUDA_BITS_ARCHITECTURES __CUDA_ARCH_LIST__
#else
#define CUDA_BITS_ARCHITECTURES 0
#endif

// The architecture that the code which the current GPU runs was compiled for, 90 for sm_90. It may be older than the
// GPU, and then it lacks what only newer ones have. The driver is asked once for each GPU. `architectures` are all that
// the program was compiled for, CUDA_BITS_ARCHITECTURES, so that two libraries in a process do not take each other's
// answer.
template <int... architectures>
__global__ void compiled_code() {}
template <int... architectures>
cudaError_t query_code(int number, int& architecture) {
  static std::atomic<int> known[64];
  const bool has_place = number < 64;
  if (has_place && (architecture = known[number].load(std::memory_order_relaxed)) > 0) return cudaSuccess;
  cudaFuncAttributes attributes;
  if (const cudaError_t error = cudaFuncGetAttributes(&attributes, compiled_code<architectures...>)) return error;
  architecture = attributes.ptxVersion;
  if (has_place) known[number].store(architecture, std::memory_order_relaxed);
  return cudaSuccess;
}

// Whether the GPU has clusters and an H100's number of bits of memory: then the tables that were measured on one serve
// it.
inline cudaError_t query_h100(int number, int architecture, bool& is_h100) {
  constexpr int kH100Bits = 5120;
  int bits = 0;
  const cudaError_t error = cudaDeviceGetAttribute(&bits, cudaDevAttrGlobalMemoryBusWidth, number);
  is_h100 = architecture >= 90 && bits == kH100Bits;
  return error;
}

// --- Launches --------------------------------------------------------------------------------------------------------

struct Grid {
  dim3 blocks, threads;
  int shared_bytes = 0, cluster = 1;  // cluster: blocks of a cluster, along x
  bool dependent = false, all_at_once = false;
};
template <class... P>
cudaError_t launch(cudaStream_t stream, const Grid& grid, void (*kernel)(P...), const P&... parameters) {
  cudaLaunchAttribute attributes[3];
  cudaLaunchConfig_t config = {};
  config.gridDim = grid.blocks;
  config.blockDim = grid.threads;
  config.dynamicSmemBytes = static_cast<size_t>(grid.shared_bytes);
  config.stream = stream;
  config.attrs = attributes;
  const auto next = [&](cudaLaunchAttributeID id) -> cudaLaunchAttributeValue& {
    attributes[config.numAttrs] = {};
    attributes[config.numAttrs].id = id;
    return attributes[config.numAttrs++].val;
  };
  if (grid.dependent)
    next(cudaLaunchAttributeProgrammaticStreamSerialization).programmaticStreamSerializationAllowed = 1;
  if (grid.all_at_once) next(cudaLaunchAttributeCooperative).cooperative = 1;
  if (grid.cluster > 1) {
    auto& size = next(cudaLaunchAttributeClusterDimension).clusterDim;
    size.x = static_cast<unsigned>(grid.cluster), size.y = 1, size.z = 1;
  }
  return cudaLaunchKernelEx(&config, kernel, parameters...);
}

__device__ inline void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
#endif
}
__device__ inline void let_next_kernel_start() {
#if __CUDA_ARCH__ >= 900
  cudaTriggerProgrammaticLaunchCompletion();
#endif
}

// --- Barriers in shared memory ---------------------------------------------------------------------------------------

__device__ inline unsigned shared_address(const void* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

using Barrier = cuda::barrier<cuda::thread_scope_block>;
static_assert(sizeof(Barrier) == sizeof(uint64_t), "an mbarrier has 64 bits");

// Waits until the barrier's phase of this parity has ended. (Barrier::wait_parity sleeps between its tries.)
__device__ inline void wait_for(Barrier& barrier, uint32_t parity) {
#ifdef __SIMT__
  barrier.wait_parity(parity != 0);
#elif __CUDA_ARCH__ >= 900
  uint32_t ended = 0;
  while (ended == 0)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(ended)
                 : "r"(shared_address(&barrier)), "r"(parity)
                 : "memory");
#endif
}

// Barriers that the thread has initialized: the copy engine sees them as they are now.
__device__ inline void show_barriers_to_copies() {
#if __CUDA_ARCH__ >= 900
  cuda::device::experimental::fence_proxy_async_shared_cta();
#endif
}

// The mailboxes of a block in a cluster, which it uses in turn. A number that another block stores there also names the
// mailbox's barrier, which counts the bytes that arrive, so that a block waits for these and for nothing else.
// cluster.sync() would first wait until all that its threads have stored is visible to the whole GPU, which takes as
// long as an access to memory. The CPU device has no such stores and uses cluster.sync().
template <int count>
struct Mailboxes {
  static constexpr int kBytes = 8 * count;  // of the barriers

  uint64_t* barriers;

  // Called by all threads when the kernel begins.
  __device__ void open() const {
#if __CUDA_ARCH__ >= 900
#ifndef __SIMT__
    if (threadIdx.x == 0) {
#pragma unroll
      for (int box = 0; box < count; ++box)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barriers + box)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
#endif
    __cluster_barrier_arrive_relaxed();
#endif
  }
  // Called by all threads before the first send(): waits until all blocks of the cluster have opened theirs.
  __device__ static void wait_until_open() {
#if __CUDA_ARCH__ >= 900
    __cluster_barrier_wait();
#endif
  }
  // Called by one thread. Numbers may arrive before it: the barrier does not complete without this call.
  __device__ void expect([[maybe_unused]] int box, [[maybe_unused]] int bytes) const {
#if __CUDA_ARCH__ >= 900 && !defined(__SIMT__)
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barriers + box)),
                 "r"(bytes)
                 : "memory");
#endif
  }
  // Stores a number for the block of another rank, whose `to` is at the same place of its shared memory as this one's.
  __device__ void send(float* to, int rank, [[maybe_unused]] int box, float number) const {
#ifdef __SIMT__
    *cooperative_groups::this_cluster().map_shared_rank(to, rank) = number;
#elif __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n.reg .b32 number, arrived;\n"
        "mapa.shared::cluster.u32 number, %0, %2;\n"
        "mapa.shared::cluster.u32 arrived, %1, %2;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [number], %3, [arrived];\n}" ::"r"(
            shared_address(to)),
        "r"(shared_address(barriers + box)), "r"(rank), "r"(__float_as_uint(number))
        : "memory");
#endif
  }
  // Called by all threads: waits until all that was expected is there, of the time of this parity that the box is used.
  __device__ void wait([[maybe_unused]] int box, [[maybe_unused]] unsigned parity) const {
#ifdef __SIMT__
    cooperative_groups::this_cluster().sync();
#elif __CUDA_ARCH__ >= 900
    unsigned all_arrived = 0;
    while (!all_arrived)
      asm volatile(
          "{\n.reg .pred done;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n"
          "selp.u32 %0, 1, 0, done;\n}"
          : "=r"(all_arrived)
          : "r"(shared_address(barriers + box)), "r"(parity)
          : "memory");
#endif
  }
};

}  // namespace cuda_bits
