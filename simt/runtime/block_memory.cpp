// The memory of a block and of its cluster: where a kernel's shared variables lie, the shared memory of other blocks,
// copies that land later, and the order in which blocks reach global memory.
#include <algorithm>

#include "scheduler_parts.h"

namespace simt {

namespace {
constexpr uint32_t kAtomicsPerTurn = 64;
}

// --- Place in the cluster ------------------------------------------------------------------------------------------

ClusterPosition cluster_position() {
  Worker& w = current("a cluster's position");
  const dim3 size = w.launch->cluster;
  const Block& b = w.block();
  return {size,
          unflatten(b.cluster_rank, size),
          {b.index.x / size.x, b.index.y / size.y, b.index.z / size.z},
          b.cluster_rank};
}

void cluster_arrive(Site site) {
  Worker& w = current("a cluster barrier");
  SIMT_ENTER(w, cluster_arrive);
  SIMT_TELL(cluster_barrier_arrived(w.where(*w.lane->warp), w.lane->number));
  w.arrive(kCluster, site);
}
void cluster_wait(Site site) {
  Worker& w = current("a cluster barrier");
  SIMT_ENTER(w, cluster_wait);
  w.wait(kCluster, site);
  SIMT_TELL(cluster_barrier_waited(w.where(*w.lane->warp), w.lane->number));
}

void grid_barrier(Site site) {
  Worker& w = current("a grid barrier");
  SIMT_ENTER(w, grid_barrier);
  w.arrive(kGrid, site);
  w.wait(kGrid, site);
}

bool is_cooperative() { return current("a grid group").launch->cooperative; }

void* map_shared_rank(const void* shared, uint32_t rank) {
  Worker& w = current("map_shared_rank");
  const char* base = w.arena(w.block());
  const char* address = static_cast<const char*>(shared);
  if (address < base || address >= base + kSharedLimit || rank >= w.launch->cluster_size)
    w.fail(cudaErrorIllegalAddress,
           "map_shared_rank needs an address in the block's own shared memory and a rank in "
           "the cluster of " +
               std::to_string(w.launch->cluster_size));
  if (w.cluster_block(rank).exited == w.launch->threads)
    w.fail(cudaErrorIllegalAddress, "map_shared_rank: block " + std::to_string(rank) +
                                        " of the cluster has ended, and its shared memory with it; let no block end "
                                        "before a cluster.sync() that comes after the last access");
  return w.arena(w.cluster_block(rank)) + (address - base);
}

int query_shared_rank(const void* shared) {
  Worker& w = current("query_shared_rank");
  const char* address = static_cast<const char*>(shared);
  for (uint32_t rank = 0; rank < w.launch->cluster_size; ++rank) {
    const char* base = w.arena(w.cluster_block(rank));
    if (address >= base && address < base + kSharedLimit) return static_cast<int>(rank);
  }
  return -1;
}

void* shared_address(SharedVariable& variable) {
  Worker& w = current("a __shared__ variable");
  Launch& l = *w.launch;
  if (__atomic_load_n(&variable.launch, __ATOMIC_ACQUIRE) != l.id) {
    const size_t dynamic = (l.dynamic_shared + 127) / 128 * 128;
    size_t end = 0;
    {
      std::lock_guard<std::mutex> lock(l.mutex);
      const auto placed = l.shared_variables.find(&variable);
      if (placed != l.shared_variables.end()) {  // another launch that is in progress has placed it since
        variable.offset = placed->second;
        variable.launch = l.id;
      } else if (variable.launch != l.id) {
        const size_t alignment = std::max<size_t>(variable.alignment, 16);
        const size_t used = std::max<size_t>(l.shared_used, dynamic);
        variable.offset = (used + alignment - 1) / alignment * alignment;
        end = variable.offset + variable.size;
        if (end - dynamic <= kStaticSharedLimit && end <= kSharedLimit) l.shared_used = end;
        if (l.takes_turns) l.shared_variables[&variable] = variable.offset;
        __atomic_store_n(&variable.launch, l.id, __ATOMIC_RELEASE);
      }
    }
    if (end - dynamic > kStaticSharedLimit && end > dynamic)
      w.fail(cudaErrorInvalidValue, "the kernel declares " + std::to_string(end - dynamic) +
                                        " bytes of static shared memory; a block has " +
                                        std::to_string(kStaticSharedLimit) + " (use dynamic shared memory)");
    if (end > kSharedLimit)
      w.fail(cudaErrorInvalidValue, "the block needs " + std::to_string(end) + " bytes of shared memory; it can have " +
                                        std::to_string(kSharedLimit));
  }
  return w.arena(w.block()) + variable.offset;
}

#ifdef SIMT_ANALYSIS
void* shared_address(SharedVariable& variable, const char* declaration) {
  const bool is_placed = variable.launch == current("a __shared__ variable").launch->id;
  void* address = shared_address(variable);
  if (!is_placed) worker->name_shared(variable.offset, variable.size, declaration);
  return address;
}
#endif

void* dynamic_shared_address() {
  Worker& w = current("an extern __shared__ array");
  return w.arena(w.block());
}

size_t dynamic_shared_size() { return current("the size of dynamic shared memory").launch->dynamic_shared; }

bool is_shared(const void* pointer) { return worker && query_shared_rank(pointer) >= 0; }

// --- Atomics and asynchronous copies -------------------------------------------------------------------------------

bool copies_land_early() { return current("an asynchronous copy").launch->copies_land_early; }

void Worker::land_copies(size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const AsyncCopy& copy = lane->copies[i];
    if (!launch->copies_land_early) copy.move();
    note_landing(copy.shared, copy.size, nullptr);
  }
  lane->copies.erase(lane->copies.begin(), lane->copies.begin() + static_cast<std::ptrdiff_t>(n));
}

void atomic_point(const void* address) {
  Worker& w = current("an atomic operation");
  ++w.stats.atomics;
  if (!kAnalysis && ++w.lane->atomics == kAtomicsPerTurn) w.yield();
  if (!is_shared(address)) w.take_turn();
}

void async_copy(void* shared, const void* global, size_t size, size_t zero_fill) {
  note_copy(shared, global, size, zero_fill, true);
  Worker& w = current("an asynchronous copy");
  const AsyncCopy copy = {shared, global, size, zero_fill};
  if (w.launch->copies_land_early) copy.move();
  w.lane->copies.push_back(copy);
}

void async_commit() {
  Lane& lane = *current("a pipeline commit").lane;
  lane.commits.push_back(lane.copies.size());
}

void async_wait(size_t groups_left) {
  Worker& w = current("a pipeline wait");
  SIMT_ENTER(w, other);
  std::vector<size_t>& commits = w.lane->commits;
  if (commits.size() <= groups_left) return;
  const size_t groups = commits.size() - groups_left;
  const size_t landed = commits[groups - 1];
  w.land_copies(landed);
  commits.erase(commits.begin(), commits.begin() + static_cast<std::ptrdiff_t>(groups));
  for (size_t& commit : commits) commit -= landed;
}

}  // namespace simt
