// Lanes run, wait and go on: fibers, barriers and the calls in which the lanes of a warp meet.
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "queues.h"
#include "scheduler_parts.h"
#include "worker_pool.h"

__thread uint3 threadIdx;
__thread uint3 blockIdx;
__thread dim3 blockDim;
__thread dim3 gridDim;

#if defined(__x86_64__) && !defined(__CET__)
// Where a new stack begins: the function and its caller, which is none, lie on it.
asm(".text\n"
    ".globl simt_fiber_start\n"
    ".hidden simt_fiber_start\n"
    ".type simt_fiber_start, @function\n"
    "simt_fiber_start:\n"
    "  pop %rcx\n"
    "  mov %rax, %rdi\n"
    "  xor %ebp, %ebp\n"
    "  jmp *%rcx\n"
    ".size simt_fiber_start, . - simt_fiber_start\n");

// After a switch of stacks, a return goes elsewhere than the processor predicts, which expects the caller of the lane
// before. Of an indirect jump it knows where the lanes before have gone. g++ jumps here in place of returning from such
// a function.
#define SIMT_RETURNS_ELSEWHERE __attribute__((function_return("thunk-extern")))
asm(".text\n"
    ".globl __x86_return_thunk\n"
    ".hidden __x86_return_thunk\n"
    ".type __x86_return_thunk, @function\n"
    "__x86_return_thunk:\n"
    "  pop %rcx\n"
    "  jmp *%rcx\n"
    ".size __x86_return_thunk, . - __x86_return_thunk\n");
#else
#define SIMT_RETURNS_ELSEWHERE
#endif

namespace simt {

__thread Worker* worker = nullptr;

// --- Fibers --------------------------------------------------------------------------------------------------------

void Worker::run_gang() {
  make_current(*pick());
  blockIdx = block().index;
  const Transfer end = switch_to_context(new_fiber(), nullptr);
  if (end.data) {  // aborted: the waiting fibers are abandoned where they stand
    free_stacks_ = stacks_;
    for (uint32_t i = 0; i < warp_count_; ++i)
      for (Lane& lane : warps_[i].lanes) {
        lane.copies.clear();
        lane.commits.clear();
        lane.describe = nullptr;
      }
  }
  check_arenas();
  for ([[maybe_unused]] const Block& b : blocks_) SIMT_TELL(block_ends(info(b)));
}

Context Worker::new_fiber() {
  if (free_stacks_.empty()) {
    constexpr size_t kPage = 4096;  // stacks an even number of pages apart would fight for the same places of the TLB
    stacks_.push_back(map_stack(kStackSize + kPage) + kPage);
    free_stacks_.push_back(stacks_.back());
  }
  fiber_stack_ = free_stacks_.back();
  free_stacks_.pop_back();
  // Stacks that all start at the same offset of a page would fight for the same cache sets. With a multiple of 128, a
  // frame that is aligned to 128 bytes lies equally deep in all of them: the analysis knows a call by its depth.
  const size_t colour = reinterpret_cast<uintptr_t>(fiber_stack_) / kStackSize * 384 % 8192;
  return make_context<fiber_main>(fiber_stack_ + kStackSize - colour, kStackSize - colour);
}

void Worker::fiber_main(Transfer from) {
  Worker& w = *worker;
  char* const stack = w.fiber_stack_;
  if (from.data)
    static_cast<Lane*>(from.data)->context = from.from;
  else
    w.main_ = from.from;
  for (;;) {
    w.lane->begins_on(stack, __builtin_frame_address(0));
    w.lane->warp->started |= 1u << w.lane->position;
    w.launch->body->run_thread();
    w.lane_exits();
    Lane* next = w.pick();
    if (!next && w.live_lanes_) w.deadlock();
    if (next) w.make_current(*next);
    if (next && !(next->warp->started >> next->position & 1)) continue;
    w.free_stacks_.push_back(stack);  // safe: nothing takes it before the jump
    switch_to_context(next ? next->context : w.main_, nullptr);
  }
}

bool Worker::is_below_a_stack(const void* address) const {
  const char* byte = static_cast<const char*>(address);
  return std::any_of(stacks_.begin(), stacks_.end(),
                     [&](const char* stack) { return byte >= stack - kGuard && byte < stack; });
}

__attribute__((always_inline)) inline void Worker::make_current(Lane& next) {
  if (!lane || lane->warp->block != next.warp->block) blockIdx = next.warp->block->index;
  lane = &next;
  threadIdx = next.thread;
}

// Inlined: after a switch every return goes elsewhere than the processor predicts.
__attribute__((always_inline)) inline void Worker::suspend(const char* waits_for, Site site) {
  Lane& self = *lane;
  if (self.warp->sweep) settle(*self.warp);
  self.waits_for = waits_for;
  self.site = site;
  Lane* next = pick();
  if (!next) deadlock();
  switch_to(*next);
}

__attribute__((always_inline)) inline void Worker::switch_to(Lane& next) {
  Lane& self = *lane;
  if (&next == &self) return;
  make_current(next);
  const bool started = next.warp->started >> next.position & 1;
  const Transfer back = switch_to_context(started ? next.context : new_fiber(), &self);
  if (back.data) static_cast<Lane*>(back.data)->context = back.from;
}

void Worker::leave_kernel(bool aborted) {
  switch_to_context(main_, aborted ? this : nullptr);
  __builtin_unreachable();
}

// --- Who runs next -------------------------------------------------------------------------------------------------

uint32_t Worker::to_positions(uint32_t lanes) const {
  if (launch->forward || lanes == ~0u) return lanes;
  uint32_t positions = 0;
  for (; lanes; lanes &= lanes - 1) positions |= 1u << launch->position_of[__builtin_ctz(lanes)];
  return positions;
}

bool Worker::next_ready_warp(uint32_t from, uint32_t& found) const {
  const size_t words = ready_warps_.size();
  for (size_t i = 0; i <= words; ++i) {
    const size_t word = (from / 64 + i) % words;
    uint64_t bits = ready_warps_[word];
    if (i == 0) bits &= ~static_cast<uint64_t>(0) << from % 64;
    if (!bits) continue;
    found = static_cast<uint32_t>(64 * word) + __builtin_ctzll(bits);
    return true;
  }
  return false;
}

// The running warp goes on while any of its lanes can; then the next warp in order.
inline Lane* Worker::pick() {
#ifdef SIMT_ANALYSIS
  return pick_in_step();
#endif
  Warp* warp = &warps_[warp_];
  if (!warp->ready && warp->at_active_mask) resolve_active_mask(*warp);
  if (!warp->ready) {
    if (!next_ready_warp((warp_ + 1) % warp_count_, warp_)) return nullptr;
    warp = &warps_[warp_];
  }
  const uint32_t later = warp->position < 31 ? warp->ready & ~0u << (warp->position + 1) : 0;
  const int position = __builtin_ctz(later ? later : warp->ready);
  warp->ready &= ~(1u << position);
  if (!warp->ready) ready_warps_[warp_ / 64] &= ~(static_cast<uint64_t>(1) << warp_ % 64);
  warp->position = position;
  return &warp->lanes[position];
}

void Worker::release(Warp& warp, uint32_t lanes) {
  if (!lanes) return;
  if (warp.sweep) settle(warp);
  const uint32_t positions = to_positions(lanes);
  warp.ready |= positions;
  if (kAnalysis)
    for (uint32_t left = positions; left; left &= left - 1) warp.lanes[__builtin_ctz(left)].waits_no_more();
  warp.position = -1;
  ready_warps_[warp.index / 64] |= static_cast<uint64_t>(1) << warp.index % 64;
}

__attribute__((noinline)) void Worker::end_by_timeout() {
  timed_out = false;
  if (lane->describe) fail(cudaErrorLaunchTimeout, timeout_sentence(*lane), lane->polled_at);
  const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  fail_at_line(*this, cudaErrorLaunchTimeout, caller, timeout_sentence(*lane));
}

void Worker::yield() {
  if (!kAnalysis && timed_out) end_by_timeout();
  Warp& warp = *lane->warp;
  const int position = warp.position;
  release(warp, 1u << lane->number);
  warp.position = position;  // the other lanes of the warp come first
  lane->atomics = 0;
  uint32_t next = warp_;
  next_ready_warp((warp_ + 1) % warp_count_, next);
  const bool has_come_around = next <= warp_ || must_yield.exchange(false, std::memory_order_relaxed);
  warp_ = next;
  const bool is_alone = &warps_[warp_] == &warp && !(warp.ready & (warp.ready - 1));  // no other lane can run here
  if (launch->takes_turns && has_come_around)
    let_other_kernels_run(is_alone);
  else if (is_alone)
    sched_yield();
  suspend("to run again", {nullptr, 0});
}

// With several devices.
__attribute__((noinline)) void Worker::let_other_kernels_run(bool is_alone) {
  constexpr unsigned kPatience = 64, kPause = 50;  // microseconds
  has_turn = false;
  const bool others = let_others_have_turns();
  has_turn = true;
  count(turns);
#ifdef SIMT_ANALYSIS
  analysis::running_launch = launch->id;
#endif
  fruitless_ = others ? 0 : fruitless_ + is_alone;
  if (fruitless_ > kPatience) usleep(kPause);  // what it polls is the host's
  if (!kAnalysis && timed_out) end_by_timeout();
  if (is_stopped_by_another() && !launch->failed.exchange(true)) launch->error = sticky();
  if (launch->failed) leave_kernel(true);
}

void Worker::lane_exits() {
  Warp& warp = *lane->warp;
  Block& block = *warp.block;
  if (warp.sweep) settle(warp);
  const uint32_t bit = 1u << lane->number;
  if (!lane->copies.empty()) land_copies(lane->copies.size());
  lane->commits.clear();
  lane->atomics = 0;
  warp.exited |= bit;
  ++block.exited;
  --live_lanes_;
  count(exits);
  for (unsigned i = 0; i < warp.rendezvous_count;) {
    Rendezvous& r = warp.rendezvous[i];
    if (!(r.mask & bit)) {
      ++i;
      continue;
    }
    if (!launch->exited_threads_arrive) {
      SIMT_FAULT(left, lane_of(warp, r.arrived));
      fail(cudaErrorLaunchFailure, "the thread exits while other lanes of its warp wait for it in " +
                                       std::string(r.what->name) + " at " + at_line(r.site) +
                                       " (SIMT_EXITED=arrive runs on without exited threads, as GPUs since Volta do)");
    }
    r.mask &= ~bit;
    if (r.mask == r.arrived)
      complete(warp, i);
    else
      ++i;
  }
  if (!launch->exited_threads_arrive) return;
  if (block.arrived && block.arrived == launch->threads - block.exited) release_block(block);
#ifdef SIMT_ANALYSIS
  left_cluster_.emplace_back(where(warp), lane->number);
#endif
  WideBarrier& cluster = barrier(kCluster);
  if (warp.arrived_wide[kCluster] & bit) --cluster.arrived;  // it counts as exited
  if (cluster.arrived && all_have_arrived(kCluster)) complete_wide(kCluster);
}

// --- Block barrier -------------------------------------------------------------------------------------------------

SIMT_RETURNS_ELSEWHERE int Worker::block_barrier(Vote vote, int predicate, Site site) {
  Block& b = block();
  if (b.arrived == 0) {
    b.barrier_site = site;
    b.votes = 0;
  } else if (!launch->barriers_may_differ && !same_line(b.barrier_site, site)) {
    SIMT_FAULT(diverged, lane_at_barrier(b));
    fail(cudaErrorLaunchFailure,
         "the block diverged: this thread waits at the barrier at " + at_line(site) + ", " + std::to_string(b.arrived) +
             " other threads wait at the barrier at " + at_line(b.barrier_site) +
             " (SIMT_BARRIERS=any lets them meet, as GPUs since Volta do)",
         site);
  }
  b.votes += predicate != 0;
  ++b.arrived;
  lane->warp->at_barrier |= 1u << lane->number;
  if (b.arrived == launch->threads - (launch->exited_threads_arrive ? b.exited : 0)) release_block(b);
  suspend("__syncthreads", site);
  switch (vote) {
    case Vote::none:
    case Vote::count:
      return static_cast<int>(b.released_votes);
    case Vote::all:
      return b.released_votes == b.released;
    case Vote::any:
      return b.released_votes != 0;
  }
  return 0;
}

void Worker::release_block(Block& b) {
  b.released = b.arrived;  // exited threads have no vote
  b.released_votes = b.votes;
  b.arrived = 0;
#ifdef SIMT_ANALYSIS
  end_calls();
#endif
  SIMT_TELL(block_barrier_completed(info(b)));
  ++stats.barriers;
  count(steps);
  const uint32_t first = b.slot * launch->warps_per_block;
  for (uint32_t i = first; i < first + launch->warps_per_block; ++i) {
    release(warps_[i], warps_[i].at_barrier);
    warps_[i].at_barrier = 0;
  }
  warp_ = first;
}

// --- Warp ----------------------------------------------------------------------------------------------------------

__attribute__((always_inline)) inline void Worker::deposit(uint64_t value, uint32_t operand) {
  Exchange& exchange = lane->warp->exchange;
  exchange.value[lane->number] = value;
  exchange.operand[lane->number] = operand;
}

// The program's code that the scheduler calls, and what that calls.
inline void Worker::combine(const Collective& what, Exchange& exchange, uint32_t mask) {
  combines.store(true, std::memory_order_relaxed);
  what.combine(exchange, mask);
  combines.store(false, std::memory_order_relaxed);
}

SIMT_RETURNS_ELSEWHERE __attribute__((noinline)) uint64_t Worker::collective(const Collective& what, uint32_t mask,
                                                                             uint64_t value, uint32_t operand,
                                                                             Site site) {
  const char* const name = what.name;
  Warp& warp = *lane->warp;
  if (warp.sweep) settle(warp);
  const unsigned number = lane->number;
  const uint32_t bit = 1u << number;
  SIMT_FAULT(mask, nullptr);
  if (!(mask & bit))
    fail(cudaErrorLaunchFailure, std::string(name) + " is called by a lane that its mask does not name", site);
  mask &= warp.present;
  if (mask & warp.exited) {
    if (!launch->exited_threads_arrive)
      fail(cudaErrorLaunchFailure,
           "the mask of " + std::string(name) + " names lane " + std::to_string(__builtin_ctz(mask & warp.exited)) +
               ", which has exited (SIMT_EXITED=arrive runs on without exited threads, as "
               "GPUs since Volta do)",
           site);
    mask &= ~warp.exited;
  }
  SIMT_FAULT(other, nullptr);
  deposit(value, operand);
  unsigned i = 0;
  while (i < warp.rendezvous_count && !warp.rendezvous[i].joins(what, mask)) ++i;
  if (i == warp.rendezvous_count) warp.rendezvous[warp.rendezvous_count++] = {&what, mask, 0, site};
  warp.rendezvous[i].arrived |= bit;
  if (warp.rendezvous[i].arrived == mask) complete(warp, i);
  suspend(name, site);
  return warp.exchange.result[number];
}

// A *sweep* is the common case, in which programs that shuffle spend their time: the lanes of a whole warp come to one
// collective in turn, and each resumes the next. Nothing is written down for it but the values, until the last lane
// comes, or until a lane does something else.
#ifndef SIMT_ANALYSIS
bool Worker::begin_sweep(const Collective& what, Site site) {
  Warp& warp = *lane->warp;
  const bool whole = (warp.present & warp.started & ~warp.exited) == ~0u;
  if (!whole || lane->position != 0 || warp.ready != ~1u || warp.rendezvous_count) return false;
  warp.sweep = &what;
  warp.rendezvous[0].site = site;
  return true;
}

__attribute__((always_inline)) inline uint64_t Worker::resume_in_sweep(Lane& next) {
  Lane& self = *lane;
  lane = &next;
  threadIdx = next.thread;
  const Transfer back = switch_to_context(next.context, &self);
  if (back.data) static_cast<Lane*>(back.data)->context = back.from;
  return self.warp->exchange.result[self.number];
}

__attribute__((always_inline)) inline uint64_t Worker::sweep(uint64_t value, uint32_t operand) {
  deposit(value, operand);
  return resume_in_sweep(*(lane + 1));
}

SIMT_RETURNS_ELSEWHERE __attribute__((noinline)) uint64_t Worker::end_sweep(uint64_t value, uint32_t operand) {
  Warp& warp = *lane->warp;
  deposit(value, operand);
  combine(*warp.sweep, warp.exchange, ~0u);
  warp.sweep = nullptr;
  ++stats.warp_ops;
  count(steps);
  return resume_in_sweep(warp.lanes[0]);  // and the others are ready, as they were when it began the sweep
}
#endif

// The running lane leaves the sweep: those before it wait, and those after it are ready.
void Worker::settle(Warp& warp) {
  const uint32_t before = (1u << lane->position) - 1;
  uint32_t arrived = 0;
  for (uint32_t left = before; left; left &= left - 1) {
    Lane& other = warp.lanes[__builtin_ctz(left)];
    other.waits_for = warp.sweep->name;
    other.site = warp.rendezvous[0].site;
    arrived |= 1u << other.number;
  }
  warp.rendezvous[0] = {warp.sweep, ~0u, arrived, warp.rendezvous[0].site};
  warp.rendezvous_count = 1;
  warp.sweep = nullptr;
  warp.position = lane->position;
  warp.ready = ~(before | 1u << lane->position);
  if (!warp.ready) ready_warps_[warp.index / 64] &= ~(static_cast<uint64_t>(1) << warp.index % 64);
}

void Worker::complete(Warp& warp, unsigned i) {
  const Rendezvous done = warp.rendezvous[i];
  warp.rendezvous[i] = warp.rendezvous[--warp.rendezvous_count];
  combine(*done.what, warp.exchange, done.mask);
  if (done.what->operation == analysis::Operation::warp_sync) SIMT_TELL(warp_synchronized(where(warp), done.mask));
  release(warp, done.mask);
  ++stats.warp_ops;
  count(steps);
}

uint32_t Worker::active_mask(Site site) {
  Warp& warp = *lane->warp;
  warp.at_active_mask |= 1u << lane->number;
  suspend("__activemask", site);
  return static_cast<uint32_t>(warp.exchange.result[lane->number]);
}

// Every lane of the warp waits somewhere: a GPU would have converged those at the same line. The lanes at the first
// line run first, so that lanes which took another branch catch up.
void Worker::resolve_active_mask(Warp& warp) {
  const auto waits = [&](const Lane& lane) { return warp.at_active_mask >> lane.number & 1; };
  const Lane* first = nullptr;
  for (const Lane& lane : warp.lanes)
    if (waits(lane) && (!first || lane.site.line < first->site.line)) first = &lane;
  uint32_t together = 0;
  for (const Lane& lane : warp.lanes)
    if (waits(lane) && same_line(first->site, lane.site)) together |= 1u << lane.number;
  for (unsigned n = 0; n < 32; ++n)
    if (together >> n & 1) warp.exchange.result[n] = together;
  warp.at_active_mask &= ~together;
  release(warp, together);
}

// --- Cluster and grid ----------------------------------------------------------------------------------------------

// A GPU's cluster barrier waits for the threads that have not exited; its grid barrier is software, and waits for all.
bool Worker::all_have_arrived(Scope scope) {
  uint64_t expected = static_cast<uint64_t>(launch->threads) * blocks_in(scope);
  if (scope == kCluster && launch->exited_threads_arrive)
    for (uint32_t rank = 0; rank < launch->cluster_size; ++rank) expected -= cluster_block(rank).exited;
  return barrier(scope).arrived == expected;
}

void Worker::arrive(Scope scope, Site site) {
  if (scope == kGrid && !launch->cooperative)
    fail(cudaErrorLaunchFailure, "a grid barrier needs a cooperative launch (cudaLaunchCooperativeKernel)", site);
  WideBarrier& b = barrier(scope);
  lane->arrival_phase[scope] = b.phase;
  lane->warp->arrived_wide[scope] |= 1u << lane->number;
  ++b.arrived;
  if (all_have_arrived(scope)) complete_wide(scope);
}

void Worker::wait(Scope scope, Site site) {
  // Also for the last to arrive: the lanes go on in order from the first.
  lane->warp->at_wide[scope] |= 1u << lane->number;
  if (lane->arrival_phase[scope] != barrier(scope).phase) {
    lane->warp->at_wide[scope] &= ~(1u << lane->number);
    release(*lane->warp, 1u << lane->number);
  }
  suspend(scope == kGrid ? "the grid barrier" : "the cluster barrier", site);
}

void Worker::complete_wide(Scope scope) {
  barrier(scope).arrived = 0;
  ++barrier(scope).phase;
  count(steps);
  if (scope == kGrid) SIMT_TELL(grid_barrier_completed());
  const uint32_t first = (scope == kGrid ? 0 : cluster_block(0).slot) * launch->warps_per_block;
  for (uint32_t i = first; i < first + blocks_in(scope) * launch->warps_per_block; ++i) {
    release(warps_[i], warps_[i].at_wide[scope]);
    warps_[i].at_wide[scope] = warps_[i].arrived_wide[scope] = 0;
  }
}

// --- Order between blocks ------------------------------------------------------------------------------------------

void Worker::take_turn() {
  if (my_turn_) return;
  while (oldest_running_block() < oldest) {
    if (launch->failed) leave_kernel(true);
    if (!kAnalysis && timed_out) end_by_timeout();
    sched_yield();
  }
  my_turn_ = true;
}

#ifdef SIMT_ANALYSIS
void Worker::go_on() { switch_to(*pick()); }
#endif

// --- core.h --------------------------------------------------------------------------------------------------------

int block_barrier(Vote vote, int predicate, Site site) {
  Worker& w = current("__syncthreads");
  SIMT_ENTER(w, block_barrier);
  return w.block_barrier(vote, predicate, site);
}

#ifdef SIMT_ANALYSIS
uint64_t warp_collective(const Collective& what, uint32_t mask, uint64_t value, uint32_t operand, Site site) {
  Worker& w = current(what.name);
  w.enter(what.operation, SIMT_CALL_HERE(w));
  return w.collective(what, mask, value, operand, site);
}
#else
// Three functions, so that the one which runs 31 times of 32 has no registers to save but the caller's.
SIMT_RETURNS_ELSEWHERE __attribute__((noinline)) static uint64_t first_or_alone(const Collective& what, uint32_t mask,
                                                                                uint64_t value, uint32_t operand,
                                                                                Site site) {
  Worker& w = current(what.name);
  if (mask == ~0u && w.begin_sweep(what, site)) return w.sweep(value, operand);
  return w.collective(what, mask, value, operand, site);
}

SIMT_RETURNS_ELSEWHERE uint64_t warp_collective(const Collective& what, uint32_t mask, uint64_t value, uint32_t operand,
                                                Site site) {
  Worker* const w = worker;
  const Collective* const under_way = w ? w->lane->warp->sweep : nullptr;
  if (!under_way || under_way->combine != what.combine || mask != ~0u)
    return first_or_alone(what, mask, value, operand, site);
  if (w->lane->position == 31) return w->end_sweep(value, operand);
  return w->sweep(value, operand);
}
#endif

uint32_t active_mask(Site site) {
  Worker& w = current("__activemask");
  SIMT_ENTER(w, other);
#ifdef SIMT_ANALYSIS
  return w.lane->warp->together;
#endif
  return w.active_mask(site);
}
uint32_t lane_id() { return current("a lane's number").lane->number; }
uint32_t present_lanes() { return current("a lane's number").lane->warp->present; }

uint32_t warp_id() {
  const Worker& w = current("a warp's number");
  return w.launch->warp_at[w.lane->warp->index % w.launch->warps_per_block];
}

void note_polling(Describe* describe, const void* object, Site site) {
  Lane& lane = *current("a barrier in memory").lane;
  lane.describe = describe;
  lane.polled_object = object;
  lane.polled_at = site;
}

void yield() {
#ifdef SIMT_ANALYSIS
  if (worker) worker->let_others_run(SIMT_CALL_HERE(*worker));
#else
  if (worker) worker->yield();
#endif
}

}  // namespace simt
