// How the blocks of a cluster send each other numbers.
#pragma once

#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace q4_gemm::detail {

// A block's two mailboxes, which it uses in turn. A number that another block stores there also names the mailbox's
// barrier, which counts the bytes that arrive, so that a block waits for these and for nothing else. cluster.sync()
// would first wait until all that its threads have stored is visible to the whole GPU, which takes as long as an access
// to memory. The CPU device has no such stores and uses cluster.sync().
struct Mailboxes {
  static constexpr int kBytes = 16;  // of both barriers

  uint64_t* barriers;

  // Called by all threads when the kernel begins.
  __device__ void open() const {
#ifdef __SIMT__
    __cluster_barrier_arrive_relaxed();
#elif __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0)
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], 1;\n"
          "mbarrier.init.shared::cta.b64 [%0 + 8], 1;\n"
          "fence.mbarrier_init.release.cluster;" ::"r"(address(barriers))
          : "memory");
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
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(barriers + box)), "r"(bytes)
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
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [number], %3, [arrived];\n}" ::"r"(address(to)),
        "r"(address(barriers + box)), "r"(rank), "r"(__float_as_uint(number))
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
          : "r"(address(barriers + box)), "r"(parity)
          : "memory");
#endif
  }

 private:
  __device__ static unsigned address(const void* shared) {
    return static_cast<unsigned>(__cvta_generic_to_shared(shared));
  }
};

}  // namespace q4_gemm::detail
