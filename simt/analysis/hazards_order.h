// Which of two memory accesses comes before the other, by what CUDA promises and not by how the CPU device happened to
// run them.
//
// Each thread has a clock, which advances when the thread makes known what it has done: at barriers, at fences, at
// arrivals. An access carries its thread and the clock; a later access comes after it if its thread knows of that
// clock. A block barrier makes everything before it known to the block, which costs one number. What only some threads
// know (after __syncwarp of a part of a warp, atomics, barriers in memory) is kept apart, and only where it happens.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "hazards_knowledge.h"
#include "observer.h"

namespace simt::analysis {

struct Stamp {  // who did it, and when
  uint32_t thread;
  Clock clock;
};

// What is known of the threads of one's own block and of others.
struct View {
  Clock base = 0;          // of the own block: everything before it
  std::vector<Clock> own;  // of its single threads, beyond that: up to this clock; empty where there is none
  Knowledge others;

  bool empty() const { return base == 0 && own.empty() && others.empty(); }
  void add(const View& other);
  const Knowledge& for_others(uint64_t own_block) const;  // all of it

 private:
  mutable Knowledge for_others_;  // made when asked for
};

// Of a thread, a block, or a word through which threads meet: what it knows, and which part of that fences have
// published, to the threads of the block or to all.
struct Views {
  View known, published_in_block, published;
  // With several devices: what fences of the system have published; what a relaxed read has brought from another
  // device, which a fence of the system makes known; and what would be known if no scope were too narrow.
  View published_in_system, pending, with_wider_scopes;

  void add(const Views& other) {
    known.add(other.known);
    published_in_block.add(other.published_in_block);
    published.add(other.published);
    published_in_system.add(other.published_in_system);
    pending.add(other.pending);
    with_wider_scopes.add(other.with_wider_scopes);
  }
};

struct WarpState {
  Clock base = 1, newest = 1;                  // all lanes know what each did before base
  Clock clock[32] = {};                        // of a lane, where larger than base and the block's
  Clock fenced[32] = {};                       // the clock after the lane's last fence
  uint32_t arrived[32] = {}, waited[32] = {};  // how often, at the cluster barrier
  std::unique_ptr<Views[]> lanes;              // where the lanes know more than their block
};

struct ClusterState {
  uint64_t number, first_block;
  unsigned threads = 0;            // of a block
  std::vector<Clock> arrivals[3];  // of all threads, at the barrier's last phases
  struct Exit {
    uint32_t phase;  // at which it arrived last
    Clock clock;
  };
  std::map<size_t, Exit> exits;  // of threads that count as arrived at the phases after
  Knowledge known_after[3];      // the same, made when asked for
  Views meeting;
};

struct BlockState {
  uint64_t sequence = 0;  // among all blocks that may run at once
  uint64_t launch = 0;
  int device = 0;
  unsigned threads = 0, cluster_size = 1;
  uintptr_t shared_begin = 0;
  Clock base = 1, newest = 1;  // all threads know what each did before base
  Clock grid_base = 0;         // the whole grid knows what its threads did before
  bool lanes_differ = false;   // in what they know
  Views views;                 // of every thread
  std::vector<WarpState> warps;
  std::shared_ptr<ClusterState> cluster;          // null where the launch has none
  std::unordered_map<uintptr_t, Views> meetings;  // in its shared memory, where there are no clusters
};

class Order {
 public:
  // One lane at work.
  struct Place {
    BlockState* block;
    WarpState* warp;
    uint32_t warp_number;
    unsigned lane;
    unsigned thread() const { return 32 * warp_number + lane; }
  };

  void begin_launch(const LaunchInfo& launch);  // beside others where it joins them
  void begin_block(const BlockInfo& block, const LaunchInfo& launch);
  void end_block(const BlockInfo& block);
  BlockState* block(uint64_t sequence);  // null where it does not run
  Place place(WarpRef where, unsigned lane);

  Stamp now(const Place& place) const { return {number(place), clock(place)}; }
  bool is_before(const Stamp& past, const Place& place) const;
  bool is_before_the_end(const Stamp& past, BlockState& block) const;  // of one of its threads at least
  bool owns(const BlockState& block, uintptr_t shared) const;
  const BlockState* owner_of(const BlockState& one, uintptr_t shared);  // in the cluster of `one`
  bool has_fenced(const Place& place) const { return place.warp->fenced[place.lane] > place.block->base; }

  // Whether the thread may know what those of other blocks did.
  bool knows_others(const Place& place) const {
    return place.block->cluster || grid_barriers_ || !views(place).known.others.empty();
  }

  uint64_t block_of(uint32_t thread) const { return thread >> thread_bits_; }
  unsigned thread_in_block(uint32_t thread) const { return thread & ((1u << thread_bits_) - 1); }
  unsigned thread_bits() const { return thread_bits_; }              // of a stamp's number, the lowest
  bool is_resident(uint32_t thread, const BlockState& with) const {  // in the same cluster
    return with.cluster ? block_of(thread) - with.cluster->first_block < with.cluster_size
                        : block_of(thread) == with.sequence;
  }

  void block_barrier(BlockState& block);
  void warp_barrier(WarpRef where, uint32_t mask);
  void cluster_arrive(const Place& place);
  void cluster_wait(const Place& place);
  void cluster_exit(const Place& place);
  void grid_barrier(uint64_t launch);
  void fence(const Place& place, FenceScope scope);
  // `everywhere`: by an access whose scope is the system, so that other devices get it.
  void release(const Place& place, uintptr_t object, bool everywhere = false);  // everything it knows
  void publish(const Place& place, uintptr_t object, bool everywhere = false);  // what it has fenced
  void acquire(const Place& place, uintptr_t object, bool everywhere = false, bool at_once = false);
  // Why another device's access does not come before this place.
  bool is_pending(const Stamp& past, const Place& place) const;      // the read that brings it is relaxed
  bool would_be_known(const Stamp& past, const Place& place) const;  // with wider scopes
  void learn(BlockState& block, const Knowledge& knowledge) { block.views.known.others.add(knowledge); }
  void release_past(const Place& place, const Stamp& past, uintptr_t object);  // one more access
  Clock tick(const Place& place);                                              // the clock before it moved on

 private:
  uint32_t number(const Place& p) const {
    return static_cast<uint32_t>(p.block->sequence) << thread_bits_ | p.thread();
  }
  static Clock clock(const Place& p) { return std::max({p.warp->clock[p.lane], p.warp->base, p.block->base}); }
  bool is_before_elsewhere(const Stamp& past, const Place& place) const;
  bool is_narrow(const BlockState& block, uintptr_t object) const;
  Views* find(const Place& place, uintptr_t object);
  Views& at(const Place& place, uintptr_t object);
  static const Views& views(const Place& p) { return p.warp->lanes ? p.warp->lanes[p.lane] : p.block->views; }
  Views& own_views(const Place& place);
  View everything_known(const Place& place) const;
  Clock arrival(const ClusterState& cluster, uint32_t phase, uint64_t rank, unsigned thread) const;
  static void meet_in_cluster(const Place& place);
  const Knowledge& known_after_cluster_barrier(const Place& place) const;

  unsigned thread_bits_ = 0;
  bool grid_barriers_ = false;
  bool several_devices_ = false;
  std::unordered_map<uint64_t, std::unique_ptr<BlockState>> blocks_;
  BlockState* latest_ = nullptr;
  std::shared_ptr<ClusterState> newest_cluster_;
  std::map<uintptr_t, Views> meetings_;  // in global memory, and of clusters
  // With several devices: the same words as other devices see them, and as if every scope were the system.
  std::map<uintptr_t, Knowledge> everywhere_, with_wider_scopes_;
  std::map<std::pair<int, uintptr_t>, Views> of_device_;
  Views& global_meeting(const Place& place, uintptr_t object) {
    return several_devices_ ? of_device_[{place.block->device, object}] : meetings_[object];
  }
};

}  // namespace simt::analysis
