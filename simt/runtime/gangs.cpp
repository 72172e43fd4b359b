// Blocks come to a worker, gang by gang, and what they did to their shared memory is looked at when they have ended.
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>

#include "capacity.h"
#include "devices.h"
#include "environment.h"
#include "scheduler_parts.h"

namespace simt {

namespace {
constexpr size_t kCanary = 64;  // bytes checked past the end of a block's shared memory
}

// The kernel limits the mappings of a process (65,530), and each guard is one. Threads of several devices that all wait
// may be more: the later stacks have no guards then. All threads run the same code, so the earlier ones tell.
char* map_stack(size_t size) {
  constexpr size_t kGuarded = 12'000;
  static std::atomic<size_t> mapped{0};
  if (mapped.fetch_add(1) < kGuarded) return map_pages(size);
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return map_pages(size);  // which says it
  madvise(pages, size, MADV_NOHUGEPAGE);            // of each only the top is used
  return static_cast<char*>(pages);
}

char* map_pages(size_t size) {
  void* pages = mmap(nullptr, size + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + kGuard, size, PROT_READ | PROT_WRITE) != 0) {
    const char* advice = several_devices()     ? "; all blocks of several devices are there at once"
                         : workers_asked() > 1 ? ", or set SIMT_WORKERS=1"
                                               : "";
    std::fprintf(stderr,
                 "simt: out of memory for the stacks and shared memory of resident threads, which take 400 MiB of "
                 "addresses for a block of 1024 threads: raise ulimit -v%s\n",
                 advice);
    std::abort();
  }
  return static_cast<char*>(pages) + kGuard;
}

// The blocks' shared memory lies within 2 GiB: inline PTX keeps the lower half of an address, also of another block's.
static char* map_arena() {
  // Less where ulimit -v leaves less.
  static const size_t kAll = std::min(size_t{1} << 30, address_space() / 16);
  constexpr size_t kOne = (kSharedLimit + kGuard - 1) / kGuard * kGuard + kGuard;
  static void* const reserved = mmap(nullptr, kAll, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  static std::atomic<size_t> used{kGuard};
  const size_t at = used.fetch_add(kOne);
  if (reserved == MAP_FAILED || at + kOne > kAll) return map_pages(kSharedLimit);
  char* arena = static_cast<char*>(reserved) + at;
  if (mprotect(arena, kSharedLimit, PROT_READ | PROT_WRITE) != 0) return map_pages(kSharedLimit);
  return arena;
}

void Worker::run(Launch& l) {
  launch = &l;
  worker = this;
  use_fault_stack();
  thread = pthread_self();
  prepare();
  timed_out = combines = false;
  in_kernel = true;
  while (!l.failed) {
    oldest = l.next_gang.load() * l.blocks_per_gang;  // a lower bound, so that no one overtakes the claim
    const uint64_t gang = l.next_gang.fetch_add(1);
    if (gang >= l.gangs) break;
    oldest = gang * l.blocks_per_gang;
    start_gang(gang);
    run_gang();
  }
  check_the_rest_of_arenas();
  in_kernel = false;
  oldest = ~static_cast<uint64_t>(0);
  worker = nullptr;
  std::lock_guard<std::mutex> lock(l.mutex);
  l.stats.barriers += stats.barriers;
  l.stats.warp_ops += stats.warp_ops;
  l.stats.atomics += stats.atomics;
}

void Worker::prepare() {
  const Launch& l = *launch;
  blockDim = l.block;
  gridDim = l.grid;
  stats = {};
  lane = nullptr;
#ifdef SIMT_ANALYSIS
  shared_names_.clear();
#endif
  blocks_.resize(l.blocks_per_gang);
  while (arenas_.size() < blocks_.size()) {
    arenas_.push_back(map_arena());  // whole pages
    std::memset(arenas_.back(), kPoison, kSharedLimit);
  }
  warp_count_ = static_cast<unsigned>(l.blocks_per_gang) * l.warps_per_block;
  if (warp_count_ > warp_capacity_) {
    warps_ = std::make_unique<Warp[]>(warp_count_);
    warp_capacity_ = warp_count_;
  }
  ready_warps_.assign((warp_count_ + 63) / 64, 0);
  for (uint32_t i = 0; i < warp_count_; ++i) {
    Warp& warp = warps_[i];
    const uint32_t first_thread = 32 * l.warp_at[i % l.warps_per_block];
    const uint32_t lanes = std::min(32u, l.threads - first_thread);
    warp.index = i;
    warp.block = &blocks_[i / l.warps_per_block];
    warp.present = lanes == 32 ? ~0u : (1u << lanes) - 1;
    for (uint8_t position = 0; position < 32; ++position) {
      Lane& lane = warp.lanes[position];
      lane.warp = &warp;
      lane.position = position;
      lane.number = l.lane_at[position];
      lane.thread = unflatten(first_thread + lane.number, l.block);
    }
  }
}

void Worker::start_gang(uint64_t gang) {
  const Launch& l = *launch;
  const dim3 clusters(l.grid.x / l.cluster.x, l.grid.y / l.cluster.y, l.grid.z / l.cluster.z);
  if (const uint64_t left = l.blocks - gang * l.blocks_per_gang; left < blocks_.size()) {  // the last ones
    blocks_.resize(left);
    warp_count_ = static_cast<unsigned>(left) * l.warps_per_block;
  }
  for (uint32_t slot = 0; slot < blocks_.size(); ++slot) {
    Block& b = blocks_[slot];
    b = Block{};
    b.slot = slot;
    b.sequence = gang * l.blocks_per_gang + slot;
    b.cluster_rank = static_cast<unsigned>(b.sequence % l.cluster_size);
    const uint3 cluster = unflatten(b.sequence / l.cluster_size, clusters);
    const uint3 in_cluster = unflatten(b.cluster_rank, l.cluster);
    b.index = {cluster.x * l.cluster.x + in_cluster.x, cluster.y * l.cluster.y + in_cluster.y,
               cluster.z * l.cluster.z + in_cluster.z};
  }
  for (uint32_t i = 0; i < warp_count_; ++i) {
    Warp& warp = warps_[i];
    warp.ready = to_positions(warp.present);
    warp.started = warp.exited = warp.at_barrier = warp.at_active_mask = 0;
    for (const Scope scope : {kCluster, kGrid}) warp.arrived_wide[scope] = warp.at_wide[scope] = 0;
    warp.rendezvous_count = 0;
    warp.sweep = nullptr;
    warp.position = -1;
    ready_warps_[i / 64] |= static_cast<uint64_t>(1) << i % 64;
  }
  live_lanes_ = static_cast<uint64_t>(l.threads) * blocks_.size();
#ifdef SIMT_ANALYSIS
  begin_blocks();
#endif
  grid_barrier_ = {};
  my_turn_ = false;
  warp_ = 0;
}

// Shared memory is poison again before the next block; a write past the end of a block's own is reported.
void Worker::check_arenas() {
  const size_t used = launch->shared_used;
  for (size_t slot = 0; slot < blocks_.size(); ++slot) {
    char* arena = arenas_[slot];
    const size_t checked = std::min(kCanary, kSharedLimit - used);
    const bool overrun = std::count(arena + used, arena + used + checked, static_cast<char>(kPoison)) !=
                         static_cast<std::ptrdiff_t>(checked);
    if (overrun && !launch->failed.exchange(true)) {
      std::lock_guard<std::mutex> lock(launch->mutex);
      launch->error = cudaErrorIllegalAddress;
      launch->message = block_name(*launch, blocks_[slot].index) +
                        ": the block wrote past the end of its shared memory (" + std::to_string(used) + " bytes" +
                        (launch->dynamic_shared ? ")" : "; the third launch argument adds dynamic ones)");
    }
    std::memset(arena, kPoison, overrun ? kSharedLimit : used);
  }
}

// The bytes that are too many to look at after each block: once for a launch, and less where many blocks are resident.
void Worker::check_the_rest_of_arenas() {
  constexpr size_t kBudget = 1 << 20, kMost = 64 << 10;  // bytes in all, and of one block
  if (!launch->shared_used || blocks_.empty()) return;
  const size_t used = std::min<size_t>(launch->shared_used + kCanary, kSharedLimit);
  for (size_t slot = 0; slot < blocks_.size(); ++slot) {
    char* rest = arenas_[slot] + used;
    const size_t size = std::min({kSharedLimit - used, kMost, kBudget / blocks_.size()});
    if (!size || (*rest == static_cast<char>(kPoison) && !std::memcmp(rest, rest + 1, size - 1))) continue;
    const auto* const at =
        std::find_if(rest, rest + size, [](char byte) { return byte != static_cast<char>(kPoison); });
    if (!launch->failed.exchange(true)) {
      std::lock_guard<std::mutex> lock(launch->mutex);
      launch->error = cudaErrorIllegalAddress;
      launch->message = "kernel " + kernel_name(*launch) + ": a block wrote " +
                        std::to_string(at - (arenas_[slot] + launch->shared_used)) +
                        " bytes past the end of its shared memory (" + std::to_string(launch->shared_used) + " bytes)";
    }
    std::memset(rest, kPoison, size);
  }
}

}  // namespace simt
