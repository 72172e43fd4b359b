// Barriers in memory, bulk copies and what belongs to them, in the forms of inline PTX that programs for Hopper use.
#include "testing.h"

#include <cooperative_groups.h>

namespace {

__device__ unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}
__device__ void barrier_init(unsigned barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}
__device__ void fence_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ void arrive_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void wait(unsigned barrier, unsigned parity) {
  asm volatile(
      "{\n"
      ".reg .pred P1;\n"
      "LAB_WAIT:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 P1, [%0], %1;\n"
      "@P1 bra.uni DONE;\n"
      "bra.uni LAB_WAIT;\n"
      "DONE:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ bool test_parity(unsigned barrier, unsigned parity) {
  unsigned done;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done;
}
__device__ void copy_to_shared(unsigned to, const void* from, unsigned bytes, unsigned barrier) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
               "l"(from), "r"(bytes), "r"(barrier)
               : "memory");
}
__device__ void copy_to_global(void* to, unsigned from, unsigned bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
               : "memory");
  asm volatile("cp.async.bulk.commit_group;");
}

constexpr int kTile = 128, kStages = 2;

}  // namespace

// --- A pipeline: one thread starts the copies, others reverse what has come, one of them starts the copy back
// ----------

template <bool waits>
__global__ void reverse_tiles(const int* in, int* out, int tiles) {
  __shared__ alignas(128) int came[kStages][kTile], goes[kTile];
  __shared__ uint64_t full[kStages], empty[kStages];
  const int t = int(threadIdx.x);
  if (t == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(shared_address(&full[stage]), 1);
      barrier_init(shared_address(&empty[stage]), kTile);
    }
    fence_init();
  }
  __syncthreads();
  for (int tile = 0; tile < tiles; ++tile) {
    const int stage = tile % kStages;
    if (t == kTile) {
      if (waits) wait(shared_address(&empty[stage]), (tile / kStages + 1) % 2);
      arrive_expect(shared_address(&full[stage]), sizeof came[0]);
      copy_to_shared(shared_address(came[stage]), in + kTile * tile, sizeof came[0], shared_address(&full[stage]));
    }
    if (t < kTile) {
      if (waits) wait(shared_address(&full[stage]), tile / kStages % 2);
      goes[t] = came[stage][kTile - 1 - t];
      arrive(shared_address(&empty[stage]));
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    }
    __syncthreads();
    if (t == 0) {
      copy_to_global(out + kTile * tile, shared_address(goes), sizeof goes);
      asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
    __syncthreads();
  }
}

TEST_CASE("a pipeline of bulk copies, and one that does not wait for them") {
  std::vector<int> in(kTile * 5);
  for (size_t i = 0; i < in.size(); ++i) in[i] = int(3 * i);
  const Device<int> device_in(in), out(in.size());
  const auto wrong = [&] {
    const auto got = out.host();
    int count = 0;
    for (int i = 0; i < kTile * 5; ++i) count += got[size_t(i)] != 3 * (i / kTile * kTile + kTile - 1 - i % kTile);
    return count;
  };
  reverse_tiles<true><<<1, kTile + 32>>>(device_in.data, out.data, 5);
  CHECK(wrong() == 0);
  reverse_tiles<false><<<1, kTile + 32>>>(device_in.data, out.data, 2);  // no stage is used twice
  CHECK(wrong() > 0);
}

// --- The other forms ------------------------------------------------------------------------------------------------

__global__ void forms(int* out) {
  __shared__ uint64_t bar;
  const unsigned b = shared_address(&bar), t = threadIdx.x;
  if (t == 0) asm volatile("mbarrier.init.shared.b64 [%0], 33;" ::"r"(b));
  __syncthreads();
  if (t == 0) out[0] = test_parity(b, 1), out[1] = test_parity(b, 0);  // the phase before the first counts as ended
  __syncthreads();
  unsigned long long state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(b) : "memory");
  if (t == 5) asm volatile("{ .reg .b64 s; mbarrier.arrive.noComplete.shared.b64 s, [%0], 1; }" ::"r"(b) : "memory");
  asm volatile("{ .reg .pred p; again%=: mbarrier.test_wait.shared.b64 p, [%0], %1; @!p bra again%=; }" ::"r"(b),
               "l"(state)
               : "memory");
  if (t == 0) out[2] = test_parity(b, 0), out[3] = test_parity(b, 1);
  __syncwarp();
  // Transactions without a copy, and a thread that arrives for the last time.
  if (t == 0) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(b));
  if (t == 0) asm volatile("mbarrier.arrive_drop.shared.b64 _, [%0], 32;" ::"r"(b));
  if (t == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(b));
  if (t == 0) out[4] = test_parity(b, 1);
  if (t == 0) asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(b));
  if (t == 0) out[5] = test_parity(b, 1);
  if (t == 0) asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(b));  // one is enough for this phase
  if (t == 0) out[6] = test_parity(b, 0);
  unsigned leader, elected;
  asm volatile("{ .reg .pred p; elect.sync %0|p, %2; selp.u32 %1, 1, 0, p; }"
               : "=r"(leader), "=r"(elected)
               : "r"(0xffffffffu));
  if (elected) out[7] = int(10 * leader + t);
  asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
  if (t == 0) asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(b));
}

TEST_CASE("states, parities, transactions, a thread less, the elected lane") {
  const Device<int> out(8, -1);
  forms<<<1, 32>>>(out.data);
  CHECK(out.host() == std::vector<int>{1, 0, 1, 0, 0, 1, 1, 0});
}

// Block 1 of a cluster waits until block 0 has arrived at its barrier, and copies into its shared memory.
__global__ void __cluster_dims__(2) across_blocks(const int* in, int* out) {
  __shared__ alignas(16) int from[32], to[32];
  __shared__ uint64_t bar;
  const unsigned t = threadIdx.x, b = shared_address(&bar);
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (t == 0) {
    barrier_init(b, 2);
    fence_init();
    if (rank == 1) arrive_expect(b, sizeof to);
  }
  from[t] = in[t] + 1;
  asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
  if (rank == 0 && t == 0) {
    unsigned remote, remote_to;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(remote) : "r"(b));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 1;" : "=r"(remote_to) : "r"(shared_address(to)));
    asm volatile(
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(remote_to),
        "r"(shared_address(from)), "r"(unsigned(sizeof from)), "r"(remote)
        : "memory");
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(remote) : "memory");
  }
  if (rank == 1) {
    wait(b, 0);
    out[t] = to[t];
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

TEST_CASE("a barrier and a copy of another block of the cluster") {
  std::vector<int> in(32), expected(32);
  for (int i = 0; i < 32; ++i) in[size_t(i)] = i, expected[size_t(i)] = i + 1;
  const Device<int> device_in(in), out(32);
  across_blocks<<<2, 32>>>(device_in.data, out.data);
  CHECK(out.host() == expected);
}

// --- What is wrong --------------------------------------------------------------------------------------------------

enum class Wrong { none, parity, bytes, not_initialized, not_shared, size };

__global__ void wrong(const int* in, int* out, Wrong what) {
  __shared__ alignas(16) int tile[32];
  __shared__ uint64_t bar;
  const unsigned b = shared_address(&bar);
  if (threadIdx.x == 0 && what != Wrong::not_initialized) barrier_init(b, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    arrive_expect(b, what == Wrong::bytes ? 256 : 128);
    if (what == Wrong::not_shared)
      asm volatile("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];" ::"l"(out),
                   "l"(in), "r"(b));
    else
      copy_to_shared(shared_address(tile), in, what == Wrong::size ? 120 : 128, b);
  }
  const unsigned parity = what == Wrong::parity ? 1 : 0;
  wait(b, 0), wait(b, parity);
  if (what == Wrong::parity) wait(b, 0), wait(b, 1);
  out[threadIdx.x] = tile[threadIdx.x];
}

TEST_CASE("what is wrong about a barrier or a copy ends the kernel with a sentence") {
  const Environment patience("SIMT_TIMEOUT", "1");
  const auto message = [](cudaError_t error, Wrong what) {
    return fault_of(error, [&] {
      const Device<int> in(64), out(64);
      wrong<<<1, 32>>>(in.data, out.data, what);
    });
  };
  CHECK(message(cudaSuccess, Wrong::none).empty());
  CHECK(contains(message(cudaErrorLaunchTimeout, Wrong::parity),
                 "parity 1 of a barrier in memory, at which 0 of 1 threads have arrived and 0 bytes"));
  CHECK(contains(message(cudaErrorLaunchTimeout, Wrong::bytes), "at which 1 of 1 threads have arrived and 128 bytes"));
  CHECK(contains(message(cudaErrorLaunchFailure, Wrong::not_initialized), "was not initialized"));
  CHECK(contains(message(cudaErrorInvalidAddressSpace, Wrong::not_shared), "is not in shared memory"));
  CHECK(contains(message(cudaErrorMisalignedAddress, Wrong::size), "not a multiple of its alignment"));
}
