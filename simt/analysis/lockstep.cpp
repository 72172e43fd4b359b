// Lockstep: which lanes of a warp run next, and together.
#include "lockstep.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "dump.h"
#include "fault.h"
#include "hooks.h"
#include "queues.h"
#include "recorder.h"
#include "scheduler.h"

namespace simt {

namespace {

constexpr unsigned kIdle = 16;             // a lane that polls this often and sees the same lets others run
constexpr unsigned kLongStreak = 1 << 20;  // steps after which others run whatever the warp does

// Lanes that are equal in this run together, the greatest first.
auto turn_of(const Lane& lane) { return std::make_tuple(lane.depth, ~lane.pc, !lane.resumes, lane.starts_block); }

}  // namespace

namespace {

// With several devices: the launches that may overlap on GPUs, with their place among the operations.
struct Known {
  uint64_t id, stream, number;
};
std::vector<Known> known;
uint64_t next_block = 0;
constexpr uint64_t kMostBlocks = 3u << 20;  // then the oldest are forgotten

bool all_come_before(const Past& past) {
  return std::all_of(known.begin(), known.end(), [&](const Known& k) { return past.holds(k.stream, k.number); });
}

}  // namespace

analysis::LaunchInfo analysis::describe(Launch& launch) {
  std::string name = launch.function ? function_name(reinterpret_cast<uintptr_t>(launch.function)) : "";
  if (name.empty()) name = kernel_name(launch);
  LaunchInfo info{launch.id,
                  name,
                  launch.grid,
                  launch.block,
                  launch.cluster,
                  launch.dynamic_shared,
                  launch.cooperative,
                  launch.overlaps,
                  reinterpret_cast<uintptr_t>(launch.stream)};
  if (!launch.takes_turns) return info;
  const Past& past = past_of_operation();
  info.device = launch.device;
  info.joins_others = (launch.overlaps || !all_come_before(past)) && next_block < kMostBlocks;
  if (!info.joins_others) {
    known.clear();
    next_block = 0;
  }
  known.push_back({launch.id, stream_of_operation(), number_of_operation()});
  launch.first_block = info.first_block = next_block;
  next_block += launch.blocks;
  info.comes_after = [past](uint64_t id) {
    const auto found =
        std::lower_bound(known.begin(), known.end(), id, [](const Known& k, uint64_t wanted) { return k.id < wanted; });
    return found == known.end() || found->id != id || past.holds(found->stream, found->number);
  };
  running_launch = launch.id;
  return info;
}

// The lane's part of a step is over; it goes on at `pc` when its turn comes.
void Worker::step(uintptr_t pc, const void* frame, bool starts_block) {
  Lane& self = *lane;
  self.pc = pc;
  self.depth = static_cast<size_t>(self.top - static_cast<const char*>(frame));
  self.resumes = false;
  self.starts_block = starts_block;
  Warp& warp = *self.warp;
  warp.ready |= 1u << self.position;
  ready_warps_[warp.index / 64] |= static_cast<uint64_t>(1) << warp.index % 64;
  if (self.idle >= kIdle) {
    warp.yielded |= 1u << self.position;
    self.idle = 0;
  }
  go_on();
}

void Worker::enter(analysis::Operation operation, analysis::Call call) {
  const analysis::Call students = analysis::calling_call(call);
  step(students.pc, students.frame, false);
  analysis::Event event;
  event.pc = students.pc;
  event.is_operation = true;
  event.operation = operation;
  analysis::recorder().record(lane->number, event);
}

void Worker::let_others_run(analysis::Call call) {
  const analysis::Call students = analysis::calling_call(call);
  lane->idle = kIdle;
  step(students.pc, students.frame, false);
}

void Worker::polls(uintptr_t address, uint64_t value) {
  Lane& self = *lane;
  for (LaneStep::Polled& known : self.polled) {
    if (known.address != address) continue;
    self.idle = known.value == value ? self.idle + 1 : 0;
    known.value = value;
    return;
  }
  self.polled[self.next_polled++ % 4] = {address, value};
}

void Worker::end_step() {
  if (!stepping_) return;
  end_calls();
  stepping_ = nullptr;
}

void Worker::end_calls() {
  for (analysis::BlockInfo& info : infos_) info.shared_size = launch->shared_used;
  if (stepping_) analysis::recorder().flush(where(*stepping_));
  for (const auto& [warp, lane] : left_cluster_) SIMT_TELL(left_cluster(warp, lane));
  left_cluster_.clear();
}

void Worker::begin_blocks() {
  stepping_ = nullptr;
  left_cluster_.clear();
  lane = nullptr;
  analysis::recorder().clear();
  for (uint32_t i = 0; i < warp_count_; ++i) {
    static_cast<WarpStep&>(warps_[i]) = {};
    for (Lane& l : warps_[i].lanes) static_cast<LaneStep&>(l) = {};
  }
  infos_.resize(blocks_.size());
  for (const Block& b : blocks_) {
    infos_[b.slot] = {b.sequence,
                      b.index,
                      launch->cluster_size > 1 ? b.sequence / launch->cluster_size : b.sequence,
                      b.cluster_rank,
                      reinterpret_cast<uintptr_t>(arena(b)),
                      launch->shared_used,
                      launch->first_block};
    SIMT_TELL(block_begins(info(b)));
  }
}

analysis::WarpRef Worker::where(const Warp& warp) const {
  return {&info(*warp.block), launch->warp_at[warp.index % launch->warps_per_block]};
}

const char* Worker::arena_at(uintptr_t address) const {
  for (size_t slot = 0; slot < blocks_.size(); ++slot)
    if (address - reinterpret_cast<uintptr_t>(arenas_[slot]) < kSharedLimit) return arenas_[slot];
  return nullptr;
}

void Worker::name_shared(size_t offset, size_t size, const char* declaration) {
  // "... simt::shared() [with T = float [8]; Declaration = kernel()::simt_S_tile]"
  constexpr char kTag[] = "simt_S_";
  const char* name = std::strstr(declaration, kTag);
  if (!name) return;
  name += sizeof kTag - 1;
  shared_names_.push_back(
      {offset, size,
       std::string(name, std::strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))});
}

analysis::Named Worker::shared_variable_at(const char* arena, uintptr_t address) const {
  const size_t offset = address - reinterpret_cast<uintptr_t>(arena);
  for (const SharedName& variable : shared_names_)
    if (offset >= variable.offset && offset < variable.offset + variable.size)
      return {variable.name, reinterpret_cast<uintptr_t>(arena) + variable.offset};
  return {offset < launch->dynamic_shared ? "dynamic shared memory" : "shared memory",
          reinterpret_cast<uintptr_t>(arena)};
}

const Lane* Worker::lane_of(const Warp& warp, uint32_t lanes) const {
  return lanes ? &warp.lanes[launch->position_of[__builtin_ctz(lanes)]] : nullptr;
}

const Lane* Worker::lane_at_barrier(const Block& block) const {
  const uint32_t first = block.slot * launch->warps_per_block;
  for (uint32_t i = first; i < first + launch->warps_per_block; ++i)
    if (warps_[i].at_barrier) return lane_of(warps_[i], warps_[i].at_barrier);
  return nullptr;
}

void Worker::fail_at(cudaError_t error, uintptr_t pc, analysis::FaultKind kind, const std::string& sentence) {
  fault_pc_ = pc;
  fault_kind_ = kind;
  fail_at_line(*this, error, pc, sentence);
}

void Worker::tell_fault(cudaError_t error, const std::string& sentence, Site site) {
  end_calls();
  analysis::Observer::Fault fault{};
  fault.where = where(*lane->warp);
  fault.lane = lane->number;
  fault.error = error;
  fault.sentence = sentence;
  if (site.file) fault.file = site.file;
  fault.line = site.line;
  fault.pc = fault_pc_ ? fault_pc_ : lane->pc;
  fault.kind = fault_kind_;
  if (fault.kind == analysis::FaultKind::other) {
    if (error == cudaErrorIllegalAddress) fault.kind = analysis::FaultKind::out_of_bounds;
    if (error == cudaErrorMisalignedAddress) fault.kind = analysis::FaultKind::misaligned;
  }
  launch->others_may_run = analysis::stays_in_its_kernel(fault.kind);
  if (fault_other_) {
    if (fault_other_->site.file) fault.other_file = fault_other_->site.file;
    fault.other_line = fault_other_->site.line;
    fault.other_pc = fault_other_->pc;
  }
  fault_pc_ = 0;
  fault_kind_ = {};
  fault_other_ = nullptr;
  SIMT_TELL(faulted(fault));
}

// The warp that runs goes on while any of its lanes can and has not let the others go first; then the next one.
Lane* Worker::pick_in_step() {
  if (lane) analysis::recorder().lane_ran(lane->number);
  if (!stepping_ || !stepping_->step) {
    end_step();
    if (!start_step()) return nullptr;
  }
  Warp& warp = *stepping_;
  const int position = __builtin_ctz(warp.step);
  warp.step &= warp.step - 1;
  return &warp.lanes[position];
}

bool Worker::start_step() {
  if (analysis::interrupted) analysis::end_if_interrupted();
  Warp* warp = &warps_[warp_];
  if (++warp->streak > kLongStreak) {
    warp->streak = 0;
    warp->yielded |= to_positions(warp->together);
  }
  if (!(warp->ready & ~warp->yielded)) {
    const uint32_t last = warp_;
    polled_ = polled_ || warp->yielded;
    warp->yielded = 0;
    warp->streak = 0;
    if (!next_ready_warp((warp_ + 1) % warp_count_, warp_)) return false;
    if (launch->takes_turns && polled_ && warp_ <= last) {
      polled_ = false;
      let_other_kernels_run(true);
    }
    warp = &warps_[warp_];
    if (!(warp->ready & ~warp->yielded)) warp->yielded = 0;
  }
  const uint32_t candidates = warp->ready & ~warp->yielded;
  const Lane* first = &warp->lanes[__builtin_ctz(candidates)];
  for (uint32_t left = candidates; left; left &= left - 1) {
    const Lane& other = warp->lanes[__builtin_ctz(left)];
    if (turn_of(*first) < turn_of(other)) first = &other;
  }
  warp->step = warp->together = 0;
  for (uint32_t left = candidates; left; left &= left - 1) {
    const Lane& other = warp->lanes[__builtin_ctz(left)];
    if (turn_of(*first) != turn_of(other)) continue;
    warp->step |= 1u << other.position;
    warp->together |= 1u << other.number;
  }
  warp->ready &= ~warp->step;
  if (!warp->ready) ready_warps_[warp_ / 64] &= ~(static_cast<uint64_t>(1) << warp_ % 64);
  stepping_ = warp;
  if (timed_out) {
    timed_out = false;
    lane = &warp->lanes[__builtin_ctz(warp->step)];
    fail_at(cudaErrorLaunchTimeout, lane->pc, analysis::FaultKind::timeout, timeout_sentence(*lane));
  }
  if (first->starts_block)
    analysis::tell([&](analysis::Observer& o) { o.ran(where(*warp), first->pc, warp->together); });
  return true;
}

}  // namespace simt
