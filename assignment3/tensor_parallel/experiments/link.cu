// Experiment 2: the link between GPU 0 and GPU 1, one access after the other, and as many as go; with more ranks, what
// a rank can send if each sends to all others.
#include "assignment3/tensor_parallel/shared.cuh"
#include "common/text.h"
#include "common/timing.h"
#include "experiments.h"

namespace ladder::tensor_parallel {
namespace {

constexpr int kSteps = 2000;
constexpr size_t kBytes = size_t{1} << 28;

// Each load gives the place of the next: none begins before the one before it has ended.
__global__ void chase_kernel(uint4* from, uint4* result) {
  uint32_t at = 0;
  for (int step = 0; step < kSteps; ++step) at = load_from_peer(from + at).x;
  if (at != 0) *result = make_uint4(at, 0, 0, 0);
}
// A store, and the wait until every GPU would see it.
__global__ void store_kernel(uint4* to) {
  for (int step = 0; step < kSteps; ++step) {
    store_to_peer(to, make_uint4(0, 0, 0, 0));
    cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
  }
}
// One GPU raises a flag, the other answers with the next.
__global__ void flags_kernel(uint64_t* own, uint64_t* peers, uint64_t base, bool begins) {
  for (int step = 1; step <= kSteps; ++step) {
    if (begins) raise_flag(peers, base + step);
    wait_for_flag(own, base + step, begins ? 1 : 0, base);
    if (!begins) raise_flag(peers, base + step);
  }
}
// The same where the data is the flag: 16 bytes that are not yet the awaited ones.
__global__ void data_kernel(uint4* own, uint4* peers, uint32_t base, bool begins) {
  for (uint32_t step = 1; step <= kSteps; ++step) {
    const uint32_t word = base + step;
    if (begins) store_to_peer(peers, make_uint4(word, word, word, word));
    Patience patience(begins ? 1 : 0, base);
    for (uint4 got = load_from_peer(own); got.x != word || got.y != word || got.z != word || got.w != word;
         got = load_from_peer(own))
      patience.spend();
    if (!begins) store_to_peer(peers, make_uint4(word, word, word, word));
  }
}
__global__ void __launch_bounds__(kThreads) copy_kernel(const uint4* from, uint4* to, size_t packs) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += size_t{gridDim.x} * blockDim.x)
    to[i] = from[i];
}
struct Places {
  uint4* of[kMostRanks];
};
__global__ void __launch_bounds__(kThreads) spread_kernel(const uint4* from, Places peers, int count, size_t packs) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packs; i += size_t{gridDim.x} * blockDim.x) {
    const uint4 pack = from[i];
    for (int peer = 0; peer < count; ++peer) store_to_peer(peers.of[peer] + i, pack);
  }
}

}  // namespace

Table link(const Report& report) {
  const int ranks = static_cast<int>(report.options.shape[2]);
  Workspace workspace;
  const Symmetric& memory = workspace.of(ranks, kBytes);
  Stopwatch stopwatch(ranks);
  std::vector<DeviceMemory<uint4>> locals;
  for (int rank = 0; rank < ranks; ++rank) {
    const OnDevice here(rank);
    locals.push_back(allocate<uint4>(kBytes / sizeof(uint4)));
  }
  const auto packs = [&](int by, int whose) { return reinterpret_cast<uint4*>(memory.seen[by][whose]); };
  const auto on = [&](int rank, auto body) {
    const OnDevice here(rank);
    body(stopwatch.stream());
    CUDA_CHECK(cudaGetLastError());
  };
  Table table;
  table.title = "Experiment 2: the link between two GPUs, median of 20";
  table.columns = {{"what", "what"}, {"nanoseconds", "ns"}, {"gb_per_s", "GB/s"}};
  const auto add = [&](const char* what, double bytes, const std::function<void()>& work) {
    work();
    CUDA_CHECK(synchronize(ranks));
    const Timing timing = sampled(20, [&] {
      const double lap = stopwatch.laps(1, work).front();
      CUDA_CHECK(synchronize(ranks));
      return lap;
    });
    if (bytes > 0)
      table.rows.push_back({what, "", text("%.1f", bytes / timing.microseconds / 1e3)});
    else
      table.rows.push_back({what, text("%.0f", 1e3 * timing.microseconds / kSteps), ""});
  };

  add("load of 16 bytes, own memory", 0,
      [&] { on(0, [&](auto s) { chase_kernel<<<1, 1, 0, s>>>(packs(0, 0), locals[0].get()); }); });
  add("load of 16 bytes, peer's memory", 0,
      [&] { on(0, [&](auto s) { chase_kernel<<<1, 1, 0, s>>>(packs(0, 1), locals[0].get()); }); });
  add("store of 16 bytes and fence, own memory", 0,
      [&] { on(0, [&](auto s) { store_kernel<<<1, 1, 0, s>>>(packs(0, 0)); }); });
  add("store of 16 bytes and fence, peer's memory", 0,
      [&] { on(0, [&](auto s) { store_kernel<<<1, 1, 0, s>>>(packs(0, 1)); }); });
  uint32_t base = 0;
  const auto both = [&](auto kernel, auto type) {
    for (int rank = 0; rank < 2; ++rank)
      on(rank, [&](auto s) {
        kernel<<<1, 1, 0, s>>>(reinterpret_cast<decltype(type)*>(packs(rank, rank) + 64),
                               reinterpret_cast<decltype(type)*>(packs(rank, 1 - rank) + 64), base, rank == 0);
      });
    base += kSteps;
  };
  add("flag there and back, release and acquire", 0, [&] { both(flags_kernel, uint64_t{}); });
  add("data there and back, 16 bytes that are the flag", 0, [&] { both(data_kernel, uint4{}); });
  const auto copy = [&](int rank, bool stores, bool local) {
    on(rank, [&](auto s) {
      uint4 *const own = locals[rank].get(), *const other = packs(rank, local ? rank : 1 - rank);
      copy_kernel<<<multiprocessors() * 4, kThreads, 0, s>>>(stores ? own : other, stores ? other : own,
                                                             kBytes / sizeof(uint4));
    });
  };
  const double bytes = static_cast<double>(kBytes);
  add("copy within a GPU, bytes read", bytes, [&] { copy(0, true, true); });
  add("stores to the peer, one direction", bytes, [&] { copy(0, true, false); });
  add("stores to the peer, both directions, each", bytes, [&] { copy(0, true, false), copy(1, true, false); });
  add("loads from the peer, one direction", bytes, [&] { copy(0, false, false); });
  add("loads from the peer, both directions, each", bytes, [&] { copy(0, false, false), copy(1, false, false); });
  if (ranks == 2) return table;
  const size_t slot = kBytes / sizeof(uint4) / ranks;  // of a rank, in each other's memory
  add("stores to all peers at once, each", static_cast<double>((ranks - 1) * slot * sizeof(uint4)), [&] {
    for (int rank = 0; rank < ranks; ++rank)
      on(rank, [&](auto s) {
        Places peers = {};
        for (int step = 1; step < ranks; ++step)
          peers.of[step - 1] = packs(rank, (rank + step) % ranks) + rank * slot;  // not all to the same first
        spread_kernel<<<multiprocessors() * 4, kThreads, 0, s>>>(locals[rank].get(), peers, ranks - 1, slot);
      });
  });
  return table;
}

}  // namespace ladder::tensor_parallel
