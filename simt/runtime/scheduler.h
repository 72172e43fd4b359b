// Runs the blocks of a kernel launch on worker threads.
//
// A worker runs one *gang* at a time: the blocks that must be resident together, which is one block, a cluster, or the
// whole grid of a cooperative launch. Lanes (CUDA threads) run as a plain loop on one stack; a lane that must wait
// keeps that stack, and the loop goes on with the next lane on a fresh one. So a kernel without barriers never
// switches.
#pragma once
#if !defined(SIMT_OBSERVED) && !defined(SIMT_ANALYSIS)
#error "a file that includes this is compiled twice: name it in simt/Makefile, under OBSERVED"
#endif
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "device_limits.h"
#include "fiber.h"
#include "launch.h"
#include "lockstep.h"
#include "simt/core.h"

namespace simt {

struct AsyncCopy {
  void* shared;
  const void* global;
  size_t size, zero_fill;

  void move() const {
    std::memcpy(shared, global, size - zero_fill);
    std::memset(static_cast<char*>(shared) + size - zero_fill, 0, zero_fill);
  }
};

// A barrier among the blocks of a cluster or a grid.
struct WideBarrier {
  uint64_t arrived = 0, phase = 0;
};
enum Scope { kCluster, kGrid };

struct Warp;

struct Lane : LaneStep {
  Context context;
  Warp* warp;
  uint3 thread;
  uint8_t number, position;
  uint32_t atomics;               // since the lane last yielded
  uint64_t arrival_phase[2];      // of the wide barriers, by scope
  std::vector<AsyncCopy> copies;  // issued, not yet landed
  std::vector<size_t> commits;    // copies.size() at each commit
  const char* waits_for;          // with `site`, for the report of a deadlock
  Site site;
  Describe* describe = nullptr;  // what it polls
  const void* polled_object = nullptr;
  Site polled_at = {};
};

// Lanes of one warp that wait for each other.
struct Rendezvous {
  const Collective* what;  // of the lane that came first, which waits
  uint32_t mask, arrived;
  Site site;

  bool joins(const Collective& other, uint32_t its_mask) const {
    return mask == its_mask && what->combine == other.combine;
  }
};

struct Block;

struct Warp : WarpStep {
  Block* block;
  uint32_t index;                                        // among the warps resident on the worker
  uint32_t ready, started;                               // scheduling positions
  int position;                                          // that ran last
  uint32_t present, exited, at_barrier, at_active_mask;  // lanes
  uint32_t arrived_wide[2], at_wide[2];                  // lanes, by scope
  unsigned rendezvous_count;
  const Collective* sweep;  // that is under way: the lanes before the running one have come to it, in order
  Rendezvous rendezvous[32];
  Exchange exchange;
  Lane lanes[32];  // in scheduling order
};

struct Block {
  uint64_t sequence;  // place in the order in which blocks are handed out
  uint3 index;
  uint32_t cluster_rank;
  uint32_t slot;  // among the blocks resident on the worker
  unsigned arrived, exited, votes;
  unsigned released, released_votes;  // of the barrier that was completed last: its threads, and their votes
  Site barrier_site;
  WideBarrier cluster_barrier;  // used in the block of rank 0
};

class Worker {
 public:
  Worker() = default;
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void run(Launch& launch);

  // On the fiber of the current lane.
  int block_barrier(Vote vote, int predicate, Site site);
  uint64_t collective(const Collective& what, uint32_t mask, uint64_t value, uint32_t operand, Site site);
  bool begin_sweep(const Collective& what, Site site);
  uint64_t sweep(uint64_t value, uint32_t operand);
  uint64_t end_sweep(uint64_t value, uint32_t operand);
  uint32_t active_mask(Site site);
  void arrive(Scope scope, Site site);
  void wait(Scope scope, Site site);
  void yield();
  [[noreturn]] void end_by_timeout();
  void take_turn();  // waits until every block before this one has finished
  void land_copies(size_t count);
  bool is_below_a_stack(const void* address) const;  // where a stack that is too small ends up
  [[noreturn]] void fail(cudaError_t error, const std::string& sentence, Site site = {nullptr, 0});
#ifdef SIMT_ANALYSIS
  // A basic block or a call of the device begins at `pc`: the lane's step is over. The frame gives the stack's depth.
  void step(uintptr_t pc, const void* frame, bool starts_block);
  void enter(analysis::Operation operation, analysis::Call call);  // a call of the device that waits or orders
  void let_others_run(analysis::Call call);
  void polls(uintptr_t address, uint64_t value);  // the lane has read this, and did not change it
  [[noreturn]] void fail_at(cudaError_t error, uintptr_t pc, analysis::FaultKind kind, const std::string& sentence);
  const char* arena_at(uintptr_t address) const;  // of a resident block, or null
  analysis::Named shared_variable_at(const char* arena, uintptr_t address) const;
  void name_shared(size_t offset, size_t size, const char* declaration);
  analysis::WarpRef where(const Warp& warp) const;
  const analysis::BlockInfo& info(const Block& block) const { return infos_[block.slot]; }
#endif

  Block& block() const { return *lane->warp->block; }
  char* arena(const Block& block) const { return arenas_[block.slot]; }
  Block& cluster_block(uint32_t rank) { return blocks_[block().slot - block().cluster_rank + rank]; }

  Launch* launch = nullptr;
  Lane* lane = nullptr;
  LaunchStats stats;
  // Read by other threads: the first block this worker still holds, and signs of life for the watchdog.
  std::atomic<uint64_t> oldest{~static_cast<uint64_t>(0)};
  std::atomic<uint64_t> steps{0}, exits{0};
  std::atomic<bool> in_kernel{false};
  std::atomic<uint64_t> thread{0};
  // With several devices: it runs, and is not waiting for its turn; how often it has had one; the watchdog's wish that
  // it lets other lanes and kernels run.
  std::atomic<bool> has_turn{true};
  std::atomic<uint64_t> turns{0};
  std::atomic<bool> must_yield{false};
  std::atomic<bool> combines{false};  // it runs a collective's combine(), in which no other lane can run
  // The watchdog's wish to end the kernel, and where it has interrupted the worker.
  std::atomic<bool> timed_out{false};
  std::atomic<uintptr_t> interrupted_at{0};
  std::atomic<bool> must_end_anywhere{false};

 private:
  static void fiber_main(Transfer from);
  void prepare();
  void start_gang(uint64_t gang);
  void run_gang();
  void check_arenas();
  void check_the_rest_of_arenas();
  Lane* pick();
  void switch_to(Lane& next);
  void make_current(Lane& next);
  void suspend(const char* waits_for, Site site);
  void let_other_kernels_run(bool is_alone);
  void lane_exits();
  void release(Warp& warp, uint32_t lanes);
  void release_block(Block& block);
  void complete(Warp& warp, unsigned rendezvous);
  void combine(const Collective& what, Exchange& exchange, uint32_t mask);
  void resolve_active_mask(Warp& warp);
  void settle(Warp& warp);
  void deposit(uint64_t value, uint32_t operand);
  uint64_t resume_in_sweep(Lane& next);
  WideBarrier& barrier(Scope scope) { return scope == kGrid ? grid_barrier_ : cluster_block(0).cluster_barrier; }
  bool all_have_arrived(Scope scope);
  uint32_t blocks_in(Scope scope) const {
    return scope == kGrid ? static_cast<uint32_t>(blocks_.size()) : launch->cluster_size;
  }
  void complete_wide(Scope scope);
  bool next_ready_warp(uint32_t from, uint32_t& found) const;
  uint32_t to_positions(uint32_t lanes) const;
  Context new_fiber();
  [[noreturn]] void deadlock();
  [[noreturn]] void leave_kernel(bool aborted);

  std::vector<Block> blocks_;
  std::unique_ptr<Warp[]> warps_;
  uint32_t warp_count_ = 0, warp_capacity_ = 0;
  std::vector<uint64_t> ready_warps_;  // a bit per resident warp
  uint32_t warp_ = 0;                  // that runs
  uint64_t live_lanes_ = 0;
  bool my_turn_ = false;
  unsigned fruitless_ = 0;  // turns in a row in which nothing else could run
  WideBarrier grid_barrier_;
  std::vector<char*> arenas_, stacks_, free_stacks_;
  char* fiber_stack_ = nullptr;  // handed to the fiber that starts
  Context main_ = nullptr;
#ifdef SIMT_ANALYSIS
  void go_on();  // the next lane runs, this one when it is picked again
  void begin_blocks();
  void end_calls();  // reports the calls of the step that runs, before their effects
  void tell_fault(cudaError_t error, const std::string& sentence, Site site);
  const Lane* lane_of(const Warp& warp, uint32_t lanes) const;  // the first of them
  const Lane* lane_at_barrier(const Block& block) const;
  Lane* pick_in_step();
  bool start_step();
  void end_step();
  Warp* stepping_ = nullptr;  // whose lanes run
  bool polled_ = false;       // a warp has polled something since the first one ran
  std::vector<analysis::BlockInfo> infos_;
  std::vector<SharedName> shared_names_;
  std::vector<std::pair<analysis::WarpRef, unsigned>> left_cluster_;  // lanes, in this step
  uintptr_t fault_pc_ = 0;  // where a fault was detected before the kernel is ended, and its kind
  analysis::FaultKind fault_kind_{};
  const Lane* fault_other_ = nullptr;  // that waits elsewhere
#endif
};

extern __thread Worker* worker __attribute__((tls_model("initial-exec")));  // null outside a kernel

// fault.cpp
std::string kernel_name(const Launch& launch);
std::string block_name(const Launch& launch, uint3 index);  // with its kernel's
std::string place(const Worker& worker, Site site);         // with its thread and the line

}  // namespace simt
