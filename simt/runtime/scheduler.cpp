#include "scheduler.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "fault.h"

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
#endif

namespace simt {

__thread Worker* worker = nullptr;

namespace {

constexpr size_t kGuard = 64 * 1024;     // inaccessible, before and after stacks and arenas
constexpr unsigned char kPoison = 0xff;  // all bits set is NaN in every float format
constexpr size_t kCanary = 64;           // bytes checked past the end of a block's shared memory
constexpr uint32_t kAtomicsPerTurn = 64;

void count(std::atomic<uint64_t>& counter) {  // only its owner writes it
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

char* map_pages(size_t size) {
  void* pages = mmap(nullptr, size + 2 * kGuard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED || mprotect(static_cast<char*>(pages) + kGuard, size, PROT_READ | PROT_WRITE) != 0) {
    std::fprintf(stderr, "simt: out of memory for the stacks and shared memory of resident threads\n");
    std::abort();
  }
  return static_cast<char*>(pages) + kGuard;
}

Worker& current(const char* builtin) {
  if (!worker) {
    std::fprintf(stderr, "simt: %s was called by host code; it works only inside a kernel\n", builtin);
    std::abort();
  }
  return *worker;
}

std::string at_line(Site site) {
  return site.file ? std::string(site.file) + ":" + std::to_string(site.line) : "an unknown line";
}

bool same_line(Site a, Site b) { return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0); }

#ifdef SIMT_ANALYSIS
// By the name of the built-in.
analysis::Operation operation_of(const char* name) {
  const auto says = [&](const char* part) { return std::strstr(name, part) != nullptr; };
  if (says("shfl")) return analysis::Operation::shuffle;
  if (says("sync of a group") || says("__syncwarp")) return analysis::Operation::warp_sync;
  if (says("reduce") || says("scan")) return analysis::Operation::warp_reduce;
  if (says("mma") || says("matrix")) return analysis::Operation::other;
  return analysis::Operation::vote;
}
#endif

uint3 unflatten(uint64_t linear, dim3 size) {
  return {static_cast<unsigned>(linear % size.x), static_cast<unsigned>(linear / size.x % size.y),
          static_cast<unsigned>(linear / size.x / size.y)};
}

}  // namespace

// --- Gangs ---------------------------------------------------------------------------------------------------------

void Worker::run(Launch& l) {
  launch = &l;
  worker = this;
  use_fault_stack();
  thread = pthread_self();
  prepare();
  timed_out = false;
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
    arenas_.push_back(map_pages(kSharedLimit));  // whole pages
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
    warp.started = warp.exited = warp.at_barrier = warp.at_active_mask = warp.at_wide[0] = warp.at_wide[1] = 0;
    warp.rendezvous_count = 0;
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
      }
  }
  check_arenas();
  for ([[maybe_unused]] const Block& b : blocks_) SIMT_TELL(block_ends(info(b)));
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

// --- Fibers --------------------------------------------------------------------------------------------------------

Context Worker::new_fiber() {
  if (free_stacks_.empty()) {
    stacks_.push_back(map_pages(kStackSize));
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
  if (launch->forward) return lanes;
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
  const uint32_t positions = to_positions(lanes);
  warp.ready |= positions;
  if (kAnalysis)
    for (uint32_t left = positions; left; left &= left - 1) warp.lanes[__builtin_ctz(left)].waits_no_more();
  warp.position = -1;
  ready_warps_[warp.index / 64] |= static_cast<uint64_t>(1) << warp.index % 64;
}

__attribute__((noinline)) void Worker::end_by_timeout() {
  timed_out = false;
  const auto caller = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  fail_at_line(*this, cudaErrorLaunchTimeout, caller, kTimeoutSentence);
}

void Worker::yield() {
  if (!kAnalysis && timed_out) end_by_timeout();
  Warp& warp = *lane->warp;
  const int position = warp.position;
  release(warp, 1u << lane->number);
  warp.position = position;  // the other lanes of the warp come first
  lane->atomics = 0;
  uint32_t next;
  if (next_ready_warp((warp_ + 1) % warp_count_, next)) warp_ = next;
  if (&warps_[warp_] == &warp && !(warp.ready & (warp.ready - 1))) sched_yield();  // no other lane can run here
  suspend("to run again", {nullptr, 0});
}

void Worker::lane_exits() {
  Warp& warp = *lane->warp;
  Block& block = *warp.block;
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
                                       std::string(r.name) + " at " + at_line(r.site) +
                                       " (SIMT_EXITED=arrive runs on without exited threads, as GPUs since Volta do)");
    }
    r.mask &= ~bit;
    if (r.mask == r.arrived)
      complete(warp, i);
    else
      ++i;
  }
  if (launch->exited_threads_arrive && block.arrived && block.arrived == launch->threads - block.exited)
    release_block(block);
}

// --- Block barrier -------------------------------------------------------------------------------------------------

inline int Worker::block_barrier(Vote vote, int predicate, Site site) {
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
      return b.vote_result;
    case Vote::all:
      return b.vote_result == static_cast<int>(launch->threads - (launch->exited_threads_arrive ? b.exited : 0));
    case Vote::any:
      return b.vote_result != 0;
  }
  return 0;
}

void Worker::release_block(Block& b) {
  b.arrived = 0;
  b.vote_result = static_cast<int>(b.votes);
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

inline uint64_t Worker::collective(Combine combine, uint32_t mask, uint64_t value, uint32_t operand, const char* name,
                                   Site site) {
  Warp& warp = *lane->warp;
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
  warp.exchange.value[number] = value;
  warp.exchange.operand[number] = operand;
  unsigned i = 0;
  while (i < warp.rendezvous_count && (warp.rendezvous[i].mask != mask || warp.rendezvous[i].combine != combine)) ++i;
  if (i == warp.rendezvous_count) warp.rendezvous[warp.rendezvous_count++] = {combine, mask, 0, name, site};
  warp.rendezvous[i].arrived |= bit;
  if (warp.rendezvous[i].arrived == mask) complete(warp, i);
  suspend(name, site);
  return warp.exchange.result[number];
}

void Worker::complete(Warp& warp, unsigned i) {
  const Rendezvous done = warp.rendezvous[i];
  warp.rendezvous[i] = warp.rendezvous[--warp.rendezvous_count];
  done.combine(warp.exchange, done.mask);
#ifdef SIMT_ANALYSIS
  if (operation_of(done.name) == analysis::Operation::warp_sync) SIMT_TELL(warp_synchronized(where(warp), done.mask));
#endif
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

uint64_t Worker::threads_in(Scope scope) const {
  return static_cast<uint64_t>(launch->threads) * (scope == kGrid ? blocks_.size() : launch->cluster_size);
}

void Worker::arrive(Scope scope, Site site) {
  if (scope == kGrid && !launch->cooperative)
    fail(cudaErrorLaunchFailure, "a grid barrier needs a cooperative launch (cudaLaunchCooperativeKernel)", site);
  WideBarrier& b = barrier(scope);
  lane->arrival_phase[scope] = b.phase;
  if (++b.arrived == threads_in(scope)) {
    b.arrived = 0;
    ++b.phase;
    release_wide(scope);
  }
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

void Worker::release_wide(Scope scope) {
  count(steps);
  if (scope == kGrid) SIMT_TELL(grid_barrier_completed());
  const uint32_t blocks = scope == kGrid ? static_cast<uint32_t>(blocks_.size()) : launch->cluster_size;
  const uint32_t first_block = scope == kGrid ? 0 : cluster_block(0).slot;
  const uint32_t first = first_block * launch->warps_per_block;
  for (uint32_t i = first; i < first + blocks * launch->warps_per_block; ++i) {
    release(warps_[i], warps_[i].at_wide[scope]);
    warps_[i].at_wide[scope] = 0;
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

// --- Ends ----------------------------------------------------------------------------------------------------------

void Worker::land_copies(size_t n) {
  for (size_t i = 0; i < n; ++i) {
    const AsyncCopy& copy = lane->copies[i];
    std::memcpy(copy.shared, copy.global, copy.size - copy.zero_fill);
    std::memset(static_cast<char*>(copy.shared) + copy.size - copy.zero_fill, 0, copy.zero_fill);
    note_landing(copy.shared, copy.size, nullptr);
  }
  lane->copies.erase(lane->copies.begin(), lane->copies.begin() + static_cast<std::ptrdiff_t>(n));
}

#ifdef SIMT_ANALYSIS
void Worker::go_on() { switch_to(*pick()); }
#endif

void Worker::fail(cudaError_t error, const std::string& sentence, Site site) {
  in_kernel = false;
  if (!launch->failed.exchange(true)) {
    std::lock_guard<std::mutex> lock(launch->mutex);
    launch->error = error;
    launch->message = place(*this, site) + ": " + sentence;
#ifdef SIMT_ANALYSIS
    tell_fault(error, sentence, site);
#endif
  }
  leave_kernel(true);
}

void Worker::deadlock() {
  // Where the live lanes wait, and how many there are at each place.
  std::map<std::pair<std::string, std::string>, unsigned> waiting;
  uint64_t exited = 0;
  const Lane* blocked = nullptr;
  [[maybe_unused]] const Lane* waits_elsewhere = nullptr;
  for (uint32_t i = 0; i < warp_count_; ++i) {
    const Warp& warp = warps_[i];
    exited += static_cast<unsigned>(__builtin_popcount(warp.exited));
    for (const Lane& l : warp.lanes) {
      if (!((warp.present & ~warp.exited) >> l.number & 1)) continue;
      ++waiting[{l.waits_for, at_line(l.site)}];
      if (!blocked) blocked = &l;
      if (!same_line(blocked->site, l.site)) waits_elsewhere = &l;
    }
  }
  std::string sentence = "deadlock:";
  const char* separator = " ";
  for (const auto& [what, lanes] : waiting) {
    sentence += separator + std::to_string(lanes) + (lanes == 1 ? " thread waits at " : " threads wait at ") +
                what.first + " (" + what.second + ")";
    separator = ", ";
  }
  if (exited) {
    sentence += separator + std::to_string(exited) + (exited == 1 ? " has exited" : " have exited");
    if (!launch->exited_threads_arrive)
      sentence += " (SIMT_EXITED=arrive counts exited threads as arrived, as GPUs since Volta do)";
  }
  lane = const_cast<Lane*>(blocked);
  const Warp& warp = *blocked->warp;
  if ((warp.at_barrier | warp.at_wide[kCluster] | warp.at_wide[kGrid]) >> blocked->number & 1)
    SIMT_FAULT(barrier, waits_elsewhere);
  else
    SIMT_FAULT(mask, waits_elsewhere);
  fail(cudaErrorLaunchFailure, sentence, blocked->site);
}

// --- core.h --------------------------------------------------------------------------------------------------------

int block_barrier(Vote vote, int predicate, Site site) {
  Worker& w = current("__syncthreads");
  SIMT_ENTER(w, block_barrier);
  return w.block_barrier(vote, predicate, site);
}

uint64_t warp_collective(Combine combine, uint32_t mask, uint64_t value, uint32_t operand, const char* name,
                         Site site) {
  Worker& w = current(name);
#ifdef SIMT_ANALYSIS
  w.enter(operation_of(name), SIMT_CALL_HERE(w));
#endif
  return w.collective(combine, mask, value, operand, name, site);
}

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
      if (variable.launch != l.id) {
        const size_t alignment = std::max<size_t>(variable.alignment, 16);
        const size_t used = std::max<size_t>(l.shared_used, dynamic);
        variable.offset = (used + alignment - 1) / alignment * alignment;
        end = variable.offset + variable.size;
        if (end - dynamic <= kStaticSharedLimit && end <= kSharedLimit) l.shared_used = end;
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

void yield() {
#ifdef SIMT_ANALYSIS
  if (worker) worker->let_others_run(SIMT_CALL_HERE(*worker));
#else
  if (worker) worker->yield();
#endif
}

void atomic_point(const void* address) {
  Worker& w = current("an atomic operation");
  ++w.stats.atomics;
  if (!kAnalysis && ++w.lane->atomics == kAtomicsPerTurn) w.yield();
  if (!is_shared(address)) w.take_turn();
}

void async_copy(void* shared, const void* global, size_t size, size_t zero_fill) {
  note_copy(shared, global, size, zero_fill, true);
  current("an asynchronous copy").lane->copies.push_back({shared, global, size, zero_fill});
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

void device_fault(int cuda_error, const char* sentence, Site site) {
  current("a device fault").fail(cudaError_t(cuda_error), sentence, site);
}

}  // namespace simt
