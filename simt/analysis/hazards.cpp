#include "hazards.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <set>

#include "hazards_launches.h"
#include "hazards_list.h"
#include "hazards_shadow.h"

namespace simt::analysis {

std::string variable_text(uintptr_t address);  // hooks.h

namespace {

enum What : unsigned {
  kRace,
  kOneInstruction,
  kCopy,
  kUninitialized,
  kUnwritten,  // global memory
  kEnded,
  kScope,
  kOverlap,
  kDeviceScope,
  kNarrow,  // an order of too narrow a scope between two devices
  kRelaxed  // a read that would have to acquire
};
constexpr unsigned kStale = 2 * (kRelaxed + 1);  // as a key

uint3 unflatten(uint64_t i, dim3 size) {
  return {static_cast<unsigned>(i % size.x), static_cast<unsigned>(i / size.x % size.y),
          static_cast<unsigned>(i / size.x / size.y)};
}

bool is_strong(uint32_t traits) { return traits & (kAtomic | kVolatile); }

// Whether every later access that races with `old` also races with `fresh`, which comes after it. If so, `old` may be
// forgotten.
bool stands_for(uint32_t fresh, uint32_t old) {
  if (fresh & kWrites && !is_strong(fresh)) return true;
  if (old & kWrites && !(fresh & kWrites)) return false;
  return is_strong(fresh) == is_strong(old);
}

class Detector : public Observer {
 public:
  void launch_begins(const LaunchInfo& launch) override {
    several_devices_ = launch.comes_after != nullptr;
    order_.begin_launch(launch);
    if (!launch.joins_others) {
      indices_.clear();
      among_.clear();
      if (several_devices_) shadow_.clear();
      ++epoch_;
      strong_seen_ = scope_seen_ = false;
    }
    if (several_devices_)
      join(launch);
    else
      launches_.begin(launch);
    launch_ = launch;
  }
  void launch_ends() override {
    if (several_devices_) {
      const Among& ended = *among_of_launch(running_launch);
      report_guesses([&](uint32_t thread) { return ended.has(order_.block_of(thread)); });
      if (--running_ == 0) report_unwritten();
      return;
    }
    report_guesses([](uint32_t) { return true; });
    report_unwritten();
    launches_.end(launch_, order_.thread_bits(), std::move(indices_), shadow_);
  }
  void block_begins(const BlockInfo& block) override {
    const LaunchInfo& launch = several_devices_ ? among_of_launch(running_launch)->info : launch_;
    order_.begin_block(block, launch);
    if (several_devices_) order_.learn(*order_.block(block.number()), among_of_launch(launch.id)->known_at_start);
    if (indices_.size() <= block.number()) indices_.resize(block.number() + 1);
    indices_[block.number()] = block.index;
    if (several_devices_ && running_ > 1) return;
    unwritten_.clear();
    visits_.clear();
    calls_.clear();
    progress_.clear();
  }
  void block_ends(const BlockInfo& block) override;

  void block_barrier_completed(const BlockInfo& block) override { order_.block_barrier(*order_.block(block.number())); }
  void warp_synchronized(WarpRef where, uint32_t mask) override { order_.warp_barrier(where, mask); }
  void cluster_barrier_arrived(WarpRef where, unsigned lane) override {
    order_.cluster_arrive(order_.place(where, lane));
  }
  void cluster_barrier_waited(WarpRef where, unsigned lane) override { order_.cluster_wait(order_.place(where, lane)); }
  void left_cluster(WarpRef where, unsigned lane) override { order_.cluster_exit(order_.place(where, lane)); }
  void grid_barrier_completed() override { order_.grid_barrier(running_launch); }
  void fenced(WarpRef where, unsigned lane, FenceScope scope) override {
    order_.fence(order_.place(where, lane), scope);
  }
  void waited_for_launch(WarpRef where, unsigned lane) override {
    const Order::Place place = order_.place(where, lane);
    if (several_devices_)
      among_of_block(place.block->sequence).waits.push_back(order_.now(place));
    else
      launches_.wait(order_, place);
  }
  void let_next_launch_start(WarpRef where, unsigned lane) override {
    if (!several_devices_) launches_.let_next_start(order_, order_.place(where, lane));
  }
  void released(WarpRef where, unsigned lane, const void* object) override {
    order_.release(order_.place(where, lane), reinterpret_cast<uintptr_t>(object));
  }
  void acquired(WarpRef where, unsigned lane, const void* object) override {
    order_.acquire(order_.place(where, lane), reinterpret_cast<uintptr_t>(object));
  }

  void request(const Request& request) override;
  void landed(WarpRef where, unsigned lane, const void* destination, size_t size, const void* object) override;
  void called(const OperationCall& call) override {
    if (call.operation > Operation::warp_reduce) return;
    calls_[{call.where.block->number(), call.where.warp}] = call;
    ++progress_of(call.where, *order_.block(call.where.block->number())).steps;
  }
  void faulted(const Fault& fault) override;

  std::string json() const { return list_.json(); }

 private:
  struct Lane {  // of a request
    Order::Place place;
    Mark mark;
    uintptr_t address;
    const unsigned char* stored;
  };
  enum Step { kCheck = 1, kMark = 2 };

  uint32_t site_of(Pc pc);
  void access(const Request& request, const Lane& lane, int steps);
  void check(const Request& request, const Lane& lane, Cell& cell, uintptr_t address, const uint32_t* value);
  void mark(const Lane& lane, bool shared, Cell& cell);
  void keep(const Mark& mark, bool shared, Cell& cell, const Order::Place* after);
  void check_launches(const Request& request, const Lane& lane);
  void check_scope(const Request& request, const Lane& lane);
  void check_written(const Lane& lane, size_t size);
  void note_unwritten(const Lane& lane, size_t size);
  void report_unwritten();
  void note_visit(const Lane& lane);
  struct Progress;
  Progress& progress_of(WarpRef where, const BlockState& block);
  void note_progress(const Request& request, const BlockState& block, uint32_t site);
  void note_update(const Request& request, Progress& progress, uint32_t site);
  bool is_update(const Mark& first, const Mark& second) const;
  bool is_later_in_program(const Mark& first, const Mark& second) const;
  void check_one_instruction(const Request& request, const Lane* lanes, unsigned count);
  bool races(const Mark& old, const Lane& lane, bool shared) const;
  bool is_guess(Space space, const Mark& old, const Mark& fresh, uintptr_t address);
  void forget_guesses(const Lane& lane, size_t size);
  template <class Of>
  void report_guesses(Of of);
  // A launch among those that may run at once.
  struct Among {
    LaunchInfo info;
    std::vector<Stamp> waits;                // for the launch before it, which it overlaps
    Knowledge known_at_start, known_at_end;  // of other launches
    bool has(uint64_t block) const {
      return block - info.first_block < static_cast<uint64_t>(info.grid.x) * info.grid.y * info.grid.z;
    }
  };
  void join(const LaunchInfo& launch);
  Among* among_of_launch(uint64_t id) const;
  Among& among_of_block(uint64_t block) const;
  bool comes_before(const Stamp& past, const Order::Place& place) const;
  void end_block_of_many(const BlockState& block);
  struct Look;
  void report_stale(const Look& look);
  What why(const Mark& old, const Lane& lane) const;
  void note_wait(const Lane& lane);

  bool is_alive(const Mark& mark, bool shared, const Order::Place& place) const {
    return mark.exists() && (!shared || order_.is_resident(mark.stamp.thread, *place.block));
  }
  Distance distance(uint32_t one, uint32_t other) const;
  void report(What what, Space space, const Mark& first, const Mark* second, uintptr_t address);
  void report_overlap(const PastLaunch& past, const Mark& old, const Mark& fresh, uintptr_t address);
  HazardEnd end(const Mark& mark, dim3 threads, const std::vector<uint3>& indices, unsigned thread_bits) const;
  HazardEnd end(const Mark& mark) const {
    const LaunchInfo& launch = several_devices_ ? among_of_block(order_.block_of(mark.stamp.thread)).info : launch_;
    HazardEnd one = end(mark, launch.block, indices_, order_.thread_bits());
    if (several_devices_) one.device = launch.device;
    return one;
  }
  Pc waits_at(const Fault& fault, bool in_its_warp) const;
  const char* sentence(What what, bool with_atomic, bool of_update, Distance distance) const;

  LaunchInfo launch_;  // that began last
  bool several_devices_ = false;
  std::vector<std::unique_ptr<Among>> among_;
  unsigned running_ = 0;
  struct Flag {  // a word that was written atomically or by a volatile store: by whom, the last time
    Mark mark;
    HazardEnd end;
    uint64_t epoch;
  };
  std::unordered_map<uintptr_t, Flag> flags_;
  uint64_t epoch_ = 0;  // counts the launches that come after all before them
  struct Look {         // of a thread at a flag that another device has set: its first in this launch
    Mark look;
    HazardEnd flag, end;
    std::string kernel;
    uintptr_t address;
    bool is_stale;
  };
  std::map<std::pair<uint32_t, uintptr_t>, Look> first_looks_;
  std::vector<Look> stale_;      // of lines that have not been seen to wait
  std::set<uint32_t> spinning_;  // sites that are waits
  Order order_;
  Launches launches_;
  Shadow shadow_;
  HazardList list_;
  std::vector<uint3> indices_;  // of the launch's blocks so far
  std::vector<Pc> sites_;
  std::unordered_map<Pc, uint32_t> site_numbers_;
  bool strong_seen_ = false, scope_seen_ = false;  // volatile or atomic accesses; atomics of block scope
  // Plain loads of a word that others update atomically, by thread and word: a compare-and-swap loop starts so.
  struct Guess {
    Space space;
    Mark old, fresh;
  };
  std::map<std::pair<uint32_t, uintptr_t>, Guess> guesses_;
  // Words that were read and had not been written: one of the reads. Had the write come first, the read would have
  // found it: where the two race, that is what is wrong.
  std::map<uintptr_t, Mark> unwritten_, unwritten_global_;
  void forget_unwritten(bool shared, uintptr_t address) {
    std::map<uintptr_t, Mark>& all = shared ? unwritten_ : unwritten_global_;
    const uintptr_t word = address & ~static_cast<uintptr_t>(3);
    all.erase(all.lower_bound(word), all.lower_bound(word + 4));
  }
  std::map<std::pair<uint64_t, uint32_t>, OperationCall> calls_;  // the latest of each block's warps
  // How far a warp is in its program: its requests, shuffles and votes since the block's last barrier, and the latest
  // request of each site.
  struct Progress {
    Clock since = 0;
    uint32_t steps = 0;
    std::vector<std::pair<uint32_t, uint32_t>> at;  // site, number of the step
    struct Load {
      uint32_t site, mask = 0;
      uintptr_t address[32];
    };
    Load loads[4];  // the latest
    unsigned next_load = 0;
  };
  std::map<std::pair<uint64_t, uint32_t>, Progress> progress_;  // by block and warp
  std::set<std::pair<uint32_t, uint32_t>>
      updates_;  // sites of a load and of a store by which a thread changes one word
  struct Visit {
    Mark mark;
    uintptr_t address;
  };
  // By block: the latest access to its shared memory by each thread of the cluster's other blocks.
  std::unordered_map<uint64_t, std::unordered_map<uint32_t, Visit>> visits_;
};

uint32_t Detector::site_of(Pc pc) {
  const auto [found, is_new] = site_numbers_.try_emplace(pc, static_cast<uint32_t>(sites_.size()));
  if (is_new) sites_.push_back(pc);
  return found->second;
}

void Detector::request(const Request& r) {
  const bool writes = r.kind != Kind::load;
  const uint32_t traits = (writes ? kWrites : 0) | (r.kind == Kind::atomic || r.overwrites ? kAtomic : 0) |
                          (r.is_volatile ? kVolatile : 0) | (r.is_async && writes ? kFlying : 0) |
                          (r.stored ? kValued : 0) | (r.of_block ? kOfBlock : 0) | (r.of_device ? kOfDevice : 0);
  const uint32_t site = site_of(r.pc) << kTraitBits;
  const bool strong = is_strong(traits), shared = r.space == Space::shared;
  strong_seen_ = strong_seen_ || strong;
  scope_seen_ = scope_seen_ || r.of_block || (several_devices_ && r.of_device);
  const bool everywhere = !r.of_block && !r.of_device;  // the scope of a volatile access is the system, too
  Lane lanes[32];
  unsigned count = 0;
  bool apart = true;  // the lanes use different bytes, as far as one can see at a glance
  Order::Place place = order_.place(r.where, 0);
  for (uint32_t left = r.mask; left; left &= left - 1) {
    place.lane = static_cast<unsigned>(__builtin_ctz(left));
    const uintptr_t address = r.address[place.lane];
    apart = apart && (!count || address >= lanes[count - 1].address + r.size);
    lanes[count++] = {place,
                      {order_.now(place), site | traits | (strong && order_.has_fenced(place) ? kFenced : 0)},
                      address,
                      r.stored ? r.stored + place.lane * r.size : nullptr};
    if (!strong) continue;
    if (scope_seen_) check_scope(r, lanes[count - 1]);
    if (several_devices_ && !shared && r.kind == Kind::load) note_wait(lanes[count - 1]);
    if (r.kind != Kind::store) order_.acquire(place, address, everywhere, r.acquires);
  }
  note_progress(r, *place.block, site >> kTraitBits);
  if (shared && !r.is_async && r.kind != Kind::store && !r.overwrites)
    for (unsigned i = 0; i < count; ++i) check_written(lanes[i], r.size);
  for (unsigned i = 0; r.unwritten && i < count; ++i)
    if (r.unwritten >> lanes[i].place.lane & 1) note_unwritten(lanes[i], r.size);
  if (shared && place.block->cluster)
    for (unsigned i = 0; i < count; ++i) note_visit(lanes[i]);
  if (!shared && !launches_.none_may_run())
    for (unsigned i = 0; i < count; ++i) check_launches(r, lanes[i]);
  // The lanes of one instruction act at once: none comes after another.
  if (apart || r.kind != Kind::store) {
    for (unsigned i = 0; i < count; ++i) {
      if (r.kind == Kind::atomic) forget_guesses(lanes[i], r.size);
      access(r, lanes[i], kCheck | kMark);
    }
  } else {
    check_one_instruction(r, lanes, count);
    for (unsigned i = 0; i < count; ++i) access(r, lanes[i], kCheck);
    for (unsigned i = 0; i < count; ++i) access(r, lanes[i], kMark);
  }
  if (!writes || !(strong || r.is_async)) return;
  for (unsigned i = 0; i < count; ++i) {
    if (several_devices_ && strong && !shared) flags_[lanes[i].address] = {lanes[i].mark, end(lanes[i].mark), epoch_};
    if (r.is_async)
      order_.tick(lanes[i].place);
    else if (r.releases)
      order_.release(lanes[i].place, lanes[i].address, everywhere);
    else
      order_.publish(lanes[i].place, lanes[i].address, everywhere);
  }
}

void Detector::access(const Request& r, const Lane& lane, int steps) {
  const bool shared = r.space == Space::shared;
  const uintptr_t end = lane.address + r.size;
  for (uintptr_t at = lane.address; at < end;) {
    const uintptr_t page_end = (at | (Shadow::kPageSize - 1)) + 1, stop = std::min(end, page_end);
    Shadow::Page& page = shadow_.page(at, stop - at, shared);
    Cell* cell = &page.cells[(at & (Shadow::kPageSize - 1)) >> page.cell_bits];
    for (const uint32_t bytes = 1u << page.cell_bits; at < stop; at += bytes, ++cell) {
      uint32_t value = 0;
      if (lane.stored) std::memcpy(&value, lane.stored + (at - lane.address), bytes);
      if (steps & kCheck) check(r, lane, *cell, at, lane.stored ? &value : nullptr);
      if (steps & kMark) {
        mark(lane, shared, *cell);
        if (lane.stored) cell->value = value;
      }
    }
  }
}

void Detector::check(const Request& r, const Lane& lane, Cell& cell, uintptr_t address, const uint32_t* value) {
  const bool shared = r.space == Space::shared;
  if (is_alive(cell.write, shared, lane.place)) {
    const bool same_value = value && cell.write.is(kValued) && !cell.write.is(kAtomic) && cell.value == *value;
    if (!same_value && races(cell.write, lane, shared) && !is_guess(r.space, cell.write, lane.mark, address)) {
      report(cell.write.is(kFlying) ? kCopy : why(cell.write, lane), r.space, cell.write, &lane.mark, address);
      if (lane.mark.is(kWrites)) forget_unwritten(shared, address);
    }
  }
  // One word has one order of writes: whoever comes after its latest atomic comes after those before that, too.
  const bool after_atomics = lane.mark.is(kWrites) && cell.write.is(kAtomic) &&
                             is_alive(cell.write, shared, lane.place) && order_.is_before(cell.write.stamp, lane.place);
  for (const Mark& old : cell.reads) {
    if (!is_alive(old, shared, lane.place) || !races(old, lane, shared)) continue;
    if ((after_atomics && old.is(kAtomic)) || is_guess(r.space, old, lane.mark, address)) continue;
    report(why(old, lane), r.space, old, &lane.mark, address);
    forget_unwritten(shared, address);
  }
}

// Whether a plain load and an atomic race in a way that may be meant, and is if the thread's next step there is an
// atomic: `old = *word; while (...) old = atomicCAS(word, old, ...)`, or a look before an atomicAdd. Otherwise it is
// reported when the thread's block ends.
bool Detector::is_guess(Space space, const Mark& old, const Mark& fresh, uintptr_t address) {
  const Mark &load = old.is(kWrites) ? fresh : old, &atomic = old.is(kWrites) ? old : fresh;
  if (load.is(kWrites | kVolatile) || !atomic.is(kAtomic)) return false;
  if (!order_.block(order_.block_of(load.stamp.thread))) return false;  // it has ended
  guesses_.try_emplace({load.stamp.thread, address}, Guess{space, old, fresh});
  return true;
}

// The thread's own atomic comes; across a barrier of the block it excuses nothing.
void Detector::forget_guesses(const Lane& lane, size_t size) {
  if (guesses_.empty()) return;
  const uint32_t thread = lane.mark.stamp.thread;
  const auto end = guesses_.lower_bound({thread, lane.address + size});
  for (auto i = guesses_.lower_bound({thread, lane.address}); i != end; i = guesses_.erase(i)) {
    const auto& [space, old, fresh] = i->second;
    const Mark& load = old.is(kWrites) ? fresh : old;
    if (load.stamp.clock < lane.place.block->base) report(kRace, space, old, &fresh, i->first.second);
  }
}

template <class Of>
void Detector::report_guesses(Of of) {
  for (auto i = guesses_.begin(); i != guesses_.end();) {
    const auto& [where, guess] = *i;
    const bool now = of(where.first);
    if (now) report(kRace, guess.space, guess.old, &guess.fresh, where.second);
    i = now ? guesses_.erase(i) : std::next(i);
  }
}

bool Detector::races(const Mark& old, const Lane& lane, bool shared) const {
  const Mark& fresh = lane.mark;
  if (!old.is(kWrites) && !fresh.is(kWrites)) return false;
  if (old.is(kFlying)) return true;
  if (order_.is_before(old.stamp, lane.place)) return false;
  if (several_devices_ && comes_before(old.stamp, lane.place)) return false;
  if (!old.is(kAtomic | kVolatile) || !fresh.is(kAtomic | kVolatile)) return true;
  if (old.is(kAtomic) || fresh.is(kAtomic)) return false;
  // Both are volatile. In global memory such words are flags between blocks and warps. Elsewhere they are flags where a
  // fence comes before they are set; without one, they are data, and volatile never was an order among the lanes of a
  // warp.
  if (!shared && distance(old.stamp.thread, fresh.stamp.thread) > Distance::same_warp) return false;
  return (old.is(kWrites) && !old.is(kFenced)) || (fresh.is(kWrites) && !fresh.is(kFenced));
}

void Detector::mark(const Lane& lane, bool shared, Cell& cell) {
  const Mark& fresh = lane.mark;
  if (!fresh.is(kWrites)) {
    keep(fresh, shared, cell, &lane.place);
    return;
  }
  const Mark old = cell.write;
  cell.write = fresh;
  for (Mark& read : cell.reads)
    if (read.exists() && stands_for(fresh.site_and_traits, read.site_and_traits) &&
        order_.is_before(read.stamp, lane.place))
      read.stamp.thread = ~0u;
  if (fresh.is(kAtomic))  // what it read of the word before, it has now looked at again
    for (Mark& read : cell.reads)
      if (read.stamp.thread == fresh.stamp.thread && !read.is(kWrites | kVolatile)) read.stamp.thread = ~0u;
  if (old.is(kAtomic) && fresh.is(kAtomic) && is_alive(old, shared, lane.place) &&
      !order_.is_before(old.stamp, lane.place))
    keep(old, shared, cell, nullptr);
}

// Among the reads. Two are kept, in different blocks or warps where there are such: a later write may come after one of
// them, but hardly after both. `after` is the place of the mark itself.
void Detector::keep(const Mark& mark, bool shared, Cell& cell, const Order::Place* after) {
  Mark &one = cell.reads[0], &two = cell.reads[1];
  for (Mark* read : {&one, &two}) {
    if (!read->exists() || (shared && after && !is_alive(*read, shared, *after)) ||
        (after && stands_for(mark.site_and_traits, read->site_and_traits) && order_.is_before(read->stamp, *after))) {
      *read = mark;
      return;
    }
  }
  const Distance kept = distance(one.stamp.thread, two.stamp.thread);
  if (distance(one.stamp.thread, mark.stamp.thread) > kept) two = mark;
}

// What launches that may still run on a GPU access of the same memory.
void Detector::check_launches(const Request& r, const Lane& lane) {
  const Launches::Running& running = launches_.may_run(order_, lane.place);
  const auto clashes = [&](const Mark& old) {
    return old.exists() && (old.is(kWrites) || lane.mark.is(kWrites)) &&
           !(is_strong(old.site_and_traits) && is_strong(lane.mark.site_and_traits));
  };
  for (const auto& past : running)
    for (uintptr_t at = lane.address, end = at + r.size; at < end;) {
      const uintptr_t stop = std::min(end, (at | (Shadow::kPageSize - 1)) + 1);
      const Shadow::Page* page = past->shadow.find(at);
      for (; page && at < stop; at = (at | ((1u << page->cell_bits) - 1)) + 1) {
        const Cell& cell = page->cells[(at & (Shadow::kPageSize - 1)) >> page->cell_bits];
        for (const Mark& old : {cell.write, cell.reads[0], cell.reads[1]})
          if (clashes(old)) return report_overlap(*past, old, lane.mark, at);
      }
      at = stop;
    }
}

// Asked before the word itself orders anything: an atomic of block scope beside one of another block.
void Detector::check_scope(const Request& r, const Lane& lane) {
  const bool shared = r.space == Space::shared;
  const Shadow::Page& page = shadow_.page(lane.address, r.size, shared);
  const Cell& cell = page.cells[(lane.address & (Shadow::kPageSize - 1)) >> page.cell_bits];
  for (const Mark& old : {cell.write, cell.reads[0], cell.reads[1]})
    if (is_alive(old, shared, lane.place) && is_strong(old.site_and_traits) &&
        (old.is(kWrites) || lane.mark.is(kWrites)) && !order_.is_before(old.stamp, lane.place) &&
        !(several_devices_ && comes_before(old.stamp, lane.place))) {
      const Distance far = distance(old.stamp.thread, lane.mark.stamp.thread);
      if ((old.is(kOfBlock) || r.of_block) && far > Distance::same_block)
        report(kScope, r.space, old, &lane.mark, lane.address);
      else if ((old.is(kOfDevice) || r.of_device) && far == Distance::other_device)
        report(kDeviceScope, r.space, old, &lane.mark, lane.address);
    }
}

// A word of which every byte asked for is unwritten. Padding in a structure shares its word with a member.
void Detector::check_written(const Lane& lane, size_t size) {
  for (uintptr_t at = lane.address, end = lane.address + size; at < end;) {
    const uintptr_t stop = std::min(end, (at | 3) + 1);
    Shadow::Page& page = shadow_.page(at, stop - at, true);
    const Cell* cell = &page.cells[(at & (Shadow::kPageSize - 1)) >> page.cell_bits];
    const Cell* last = &page.cells[((stop - 1) & (Shadow::kPageSize - 1)) >> page.cell_bits];
    while (cell <= last && !is_alive(cell->write, true, lane.place)) ++cell;
    if (cell > last) unwritten_.try_emplace(at & ~static_cast<uintptr_t>(3), lane.mark);
    at = stop;
  }
}

void Detector::note_unwritten(const Lane& lane, size_t size) {
  constexpr size_t kMost = 1 << 16;
  for (uintptr_t at = lane.address; at < lane.address + size && unwritten_global_.size() < kMost; at = (at | 3) + 1)
    unwritten_global_.try_emplace(at, lane.mark);
}

void Detector::report_unwritten() {
  for (const auto& [address, mark] : unwritten_global_) report(kUnwritten, Space::global, mark, nullptr, address);
  unwritten_global_.clear();
}

// An access to the shared memory of another block of the cluster, which must not end before it.
void Detector::note_visit(const Lane& lane) {
  if (order_.owns(*lane.place.block, lane.address)) return;
  if (const BlockState* owner = order_.owner_of(*lane.place.block, lane.address))
    visits_[owner->sequence][lane.mark.stamp.thread] = {lane.mark, lane.address};
}

Detector::Progress& Detector::progress_of(WarpRef where, const BlockState& block) {
  Progress& progress = progress_[{where.block->number(), where.warp}];
  if (progress.since != block.base) {
    progress.since = block.base;
    progress.steps = 0;
    progress.at.clear();
    for (auto& load : progress.loads) load.mask = 0;
  }
  return progress;
}

void Detector::note_progress(const Request& r, const BlockState& block, uint32_t site) {
  Progress& progress = progress_of(r.where, block);
  ++progress.steps;
  note_update(r, progress, site);
  for (auto& [known, number] : progress.at)
    if (known == site) {
      number = progress.steps;
      return;
    }
  progress.at.emplace_back(site, progress.steps);
}

void Detector::note_update(const Request& r, Progress& progress, uint32_t site) {
  if (r.kind == Kind::load) {
    auto& load = progress.loads[progress.next_load++ % std::size(progress.loads)];
    load.site = site;
    load.mask = r.mask;
    std::copy(r.address, r.address + 32, load.address);
  } else if (r.kind == Kind::store) {
    for (const auto& load : progress.loads)
      for (uint32_t left = load.mask & r.mask; left; left &= left - 1)
        if (const int lane = __builtin_ctz(left); load.address[lane] == r.address[lane]) {
          updates_.insert({load.site, site});
          break;
        }
  }
}

// Whether two threads each read a word and write it back.
bool Detector::is_update(const Mark& first, const Mark& second) const {
  const uint32_t one = first.site(), other = second.site();
  if (!first.is(kWrites) || !second.is(kWrites)) return updates_.count({one, other}) || updates_.count({other, one});
  return one == other &&
         std::any_of(updates_.begin(), updates_.end(), [&](const auto& update) { return update.second == one; });
}

// The CPU device runs one warp up to a barrier and then the next: what it did first may come later in the program,
// which is the same for all.
bool Detector::is_later_in_program(const Mark& first, const Mark& second) const {
  if (distance(first.stamp.thread, second.stamp.thread) != Distance::same_block) return false;
  const auto number_of = [&](const Mark& mark) {
    const uint64_t block = order_.block_of(mark.stamp.thread);
    const auto progress = progress_.find({block, order_.thread_in_block(mark.stamp.thread) / 32});
    if (progress == progress_.end()) return 0u;
    for (const auto& [site, number] : progress->second.at)
      if (site == mark.site()) return number;
    return 0u;
  };
  const uint32_t of_first = number_of(first), of_second = number_of(second);
  return of_first && of_second && of_first > of_second;
}

// Blocks of a cluster are reported to end together, when all their threads have ended.
void Detector::block_ends(const BlockInfo& info) {
  BlockState& block = *order_.block(info.number());
  if (several_devices_) end_block_of_many(block);
  for (auto i = unwritten_.begin(); i != unwritten_.end();) {
    const auto& [address, mark] = *i;
    const bool is_here = order_.block_of(mark.stamp.thread) == info.number();
    if (is_here) report(kUninitialized, Space::shared, mark, nullptr, address);
    i = is_here ? unwritten_.erase(i) : std::next(i);
  }
  report_guesses([&](uint32_t thread) { return order_.block_of(thread) == info.number(); });
  if (const auto visits = visits_.find(info.number()); visits != visits_.end()) {
    for (const auto& [thread, visit] : visits->second)
      if (!order_.is_before_the_end(visit.mark.stamp, block))
        report(kEnded, Space::shared, visit.mark, nullptr, visit.address);
    visits_.erase(visits);
  }
  launches_.end_block(info.number());
  order_.end_block(info);
}

void Detector::check_one_instruction(const Request& r, const Lane* lanes, unsigned count) {
  if (!r.stored) return;
  for (unsigned i = 1; i < count; ++i)
    for (unsigned j = 0; j < i; ++j)
      if (lanes[i].address == lanes[j].address && std::memcmp(lanes[i].stored, lanes[j].stored, r.size) != 0) {
        report(kOneInstruction, r.space, lanes[j].mark, &lanes[i].mark, lanes[i].address);
        break;
      }
}

void Detector::landed(WarpRef where, unsigned lane, const void* destination, size_t size, const void* object) {
  const Order::Place place = order_.place(where, lane);
  Stamp latest{~0u, 0};
  const uintptr_t end = reinterpret_cast<uintptr_t>(destination) + size;
  for (uintptr_t at = reinterpret_cast<uintptr_t>(destination); at < end;) {
    const uintptr_t stop = std::min(end, (at | 3) + 1);
    Shadow::Page& page = shadow_.page(at, stop - at, true);
    Mark& write = page.cells[(at & (Shadow::kPageSize - 1)) >> page.cell_bits].write;
    at += std::min<uintptr_t>(stop - at, 1u << page.cell_bits);
    if (!is_alive(write, true, place) || !write.is(kFlying)) continue;
    write.site_and_traits &= ~static_cast<uint32_t>(kFlying);
    if (!object) {
      write.stamp = order_.now(place);
    } else if (write.stamp.thread != latest.thread || write.stamp.clock != latest.clock) {
      latest = write.stamp;
      order_.release_past(place, latest, reinterpret_cast<uintptr_t>(object));
    }
  }
}

// --- Reports ---------------------------------------------------------------------------------------------------------

Distance Detector::distance(uint32_t one, uint32_t other) const {
  if (one == other) return Distance::same_thread;
  uint64_t block = order_.block_of(one), other_block = order_.block_of(other);
  if (block == other_block) return (one ^ other) < 32 ? Distance::same_warp : Distance::same_block;
  const LaunchInfo* launch = &launch_;
  if (several_devices_) {
    launch = &among_of_block(block).info;
    const LaunchInfo* const other_launch = &among_of_block(other_block).info;
    if (launch->device != other_launch->device) return Distance::other_device;
    if (launch != other_launch) return Distance::other_launch;
    block -= launch->first_block;
    other_block -= launch->first_block;
  }
  const auto cluster = static_cast<uint64_t>(launch->cluster.x) * launch->cluster.y * launch->cluster.z;
  return block / cluster == other_block / cluster ? Distance::same_cluster : Distance::same_grid;
}

HazardEnd Detector::end(const Mark& mark, dim3 threads, const std::vector<uint3>& indices, unsigned thread_bits) const {
  HazardEnd end;
  end.pc = sites_[mark.site()];
  end.kind = mark.is(kAtomic) ? "atomic" : mark.is(kWrites) ? "store" : "load";
  end.has_thread = true;
  end.thread = unflatten(mark.stamp.thread & ((1u << thread_bits) - 1), threads);
  end.block = indices[mark.stamp.thread >> thread_bits];
  return end;
}

const char* Detector::sentence(What what, bool with_atomic, bool of_update, Distance far) const {
  switch (what) {
    case kEnded:
      return "A thread uses the shared memory of another block of its cluster, and that block may have ended by then. "
             "Let a barrier of the cluster (cluster.sync()) come after the last such access.";
    case kUninitialized:
      return "The block reads shared memory that it has not written: it holds whatever lay there before. Write it "
             "first, and let a barrier stand between.";
    case kUnwritten:
      return "The kernel reads memory that nothing has written since it was allocated, neither a kernel nor a copy nor "
             "cudaMemset: it holds whatever lay there before. Write it first, or set it to zero if sums begin there.";
    case kOneInstruction:
      return "Lanes of one warp store different values to one address in the same instruction, and which of them stays "
             "is not defined. Let one lane store, or use an atomic.";
    case kScope:
      return "One of the atomics has the scope of its block (atomicAdd_block, cuda::thread_scope_block): beside a "
             "thread of another block it is no atomic. Give it the scope of the device.";
    case kDeviceScope:
      return "One of the atomics has the scope of its device (atomicAdd, cuda::thread_scope_device, .gpu): beside a "
             "thread of another device it is no atomic. Give it the scope of the system (atomicAdd_system, "
             "cuda::thread_scope_system, .sys).";
    case kNarrow:
      return "What is to order these accesses of two devices has too narrow a scope: a fence or an access of the "
             "device "
             "or the block (__threadfence(), cuda::thread_scope_device, .gpu) means nothing to another device. Use "
             "__threadfence_system(), cuda::thread_scope_system or .sys.";
    case kRelaxed:
      return "The device has seen the other one's flag by a relaxed or volatile read, and no acquire follows: what was "
             "written before the flag need not be there yet. Read the flag with an acquire of the system's scope "
             "(ld.acquire.sys), or put __threadfence_system() after the wait.";
    case kCopy:
      return "The memory is used while an asynchronous copy to it is under way. Wait for the copy first (its "
             "pipeline's or its barrier's wait), and let __syncthreads() follow where other threads use what it "
             "brought.";
    case kOverlap:
    case kRace:
      break;
  }
  if (far == Distance::other_device)
    return "Two devices use the same memory, and nothing orders them. Put __threadfence_system() between the accesses "
           "and a flag that is set in the scope of the system (volatile, atomicExch_system, cuda::atomic_ref, "
           "st.release.sys), and let the other device wait for the flag with an acquire of that scope; or let the "
           "host or an event order the two launches.";
  if (far == Distance::other_launch)
    return "Two launches use the same memory, and nothing orders them: they are in different streams, or the later one "
           "is a dependent launch that has not waited. Put them into one stream, let an event order them, or call "
           "cudaGridDependencySynchronize() first.";
  if (with_atomic)
    return "One of the accesses is atomic and the other is not, and nothing orders them. Make both atomic, or let a "
           "barrier or a fence with a flag stand between.";
  if (of_update)
    return "Several threads read one word, change it and write it back, so what one of them adds gets lost. Use an "
           "atomic (atomicAdd), or a reduction whose result one thread writes.";
  switch (far) {
    case Distance::same_thread:
    case Distance::same_warp:
      return "The lanes of a warp are not in step, and neither volatile nor a shuffle orders what they do to memory. "
             "Put __syncwarp() between the two lines, in a loop also before the next round.";
    case Distance::same_block:
      return strong_seen_ ? "Two warps of a block use the same memory, and nothing orders them. Put __syncthreads() "
                            "between the two lines; where a lock, a counter or a flag is to order them, a "
                            "__threadfence() before it is set or freed."
                          : "Two warps of a block use the same memory, and no barrier lies between. Put "
                            "__syncthreads() between the two lines, in a loop also before the next round.";
    case Distance::same_cluster:
      return "Two blocks of a cluster use the same memory, and nothing orders them. Put a barrier of the cluster "
             "(cluster.sync()) between the two lines.";
    case Distance::same_grid:
    case Distance::other_launch:
    case Distance::other_device:
      break;
  }
  return strong_seen_ ? "Threads of two blocks use the same memory, and nothing orders them. Where a lock, a counter "
                        "or a flag is to do that, put a __threadfence() before it is set or freed; otherwise make the "
                        "accesses atomic, or start a second kernel."
                      : "Threads of two blocks use the same memory, and nothing orders the blocks of a launch. Let "
                        "each write a place of its own, use an atomic, or start a second kernel.";
}

// --- Several devices -------------------------------------------------------------------------------------------------

void Detector::join(const LaunchInfo& launch) {
  Among fresh;
  fresh.info = launch;
  for (const auto& other : among_)
    if (launch.comes_after(other->info.id)) fresh.known_at_start.add(other->known_at_end);
  running_ = launch.joins_others ? running_ + 1 : 1;
  among_.push_back(std::make_unique<Among>(std::move(fresh)));
}

Detector::Among* Detector::among_of_launch(uint64_t id) const {
  for (auto i = among_.rbegin(); i != among_.rend(); ++i)
    if ((*i)->info.id == id) return i->get();
  return among_.back().get();
}

Detector::Among& Detector::among_of_block(uint64_t block) const {
  const auto after = std::upper_bound(among_.begin(), among_.end(), block,
                                      [](uint64_t number, const auto& a) { return number < a->info.first_block; });
  return **std::prev(after);
}

// Whether the launch that an access belongs to had ended before this place, by streams, events and waits of the host,
// or was known to this launch from the start.
bool Detector::comes_before(const Stamp& past, const Order::Place& place) const {
  const Among &own = among_of_block(place.block->sequence), &other = among_of_block(order_.block_of(past.thread));
  if (&own == &other || !own.info.comes_after(other.info.id)) return false;
  if (own.info.overlaps != other.info.id) return true;
  return std::any_of(own.waits.begin(), own.waits.end(),
                     [&](const Stamp& wait) { return order_.is_before(wait, place); });
}

void Detector::end_block_of_many(const BlockState& block) {
  Knowledge& known = among_of_block(block.sequence).known_at_end;
  const auto add = [&](const Views& views) {
    known.add(views.known.others);
    known.add(views.pending.others);  // a kernel's end is a fence of the system
  };
  add(block.views);
  for (const WarpState& warp : block.warps)
    for (unsigned lane = 0; warp.lanes && lane < 32; ++lane) add(warp.lanes[lane]);
  for (auto i = first_looks_.begin(); i != first_looks_.end();) {
    const bool is_here = order_.block_of(i->first.first) == block.sequence;
    if (is_here && i->second.is_stale) {
      i->second.end = end(i->second.look);
      stale_.push_back(i->second);
    }
    i = is_here ? first_looks_.erase(i) : std::next(i);
  }
  for (auto i = stale_.begin(); i != stale_.end();) {
    const bool spins = spinning_.count(i->look.site());
    if (spins) report_stale(*i);
    i = spins ? stale_.erase(i) : std::next(i);
  }
}

void Detector::report_stale(const Look& look) {
  bool is_new = false;
  Hazard* hazard = list_.count(look.kernel, kStale, look.flag.pc, look.end.pc, Distance::other_device, is_new);
  if (!hazard || !is_new) return;
  hazard->what = "stale";
  hazard->detail = "a flag that an earlier launch left set";
  hazard->address = look.address;
  hazard->variable = variable_text(look.address);
  hazard->first = look.flag;
  hazard->has_second = true;
  hazard->second = look.end;
  hazard->sentence =
      "The wait for another device is over at once, since the flag still has the value that an earlier launch left: "
      "this launch goes on before the other device has come. Let the flag carry the number of the launch, or clear it "
      "between the launches.";
}

What Detector::why(const Mark& old, const Lane& lane) const {
  if (distance(old.stamp.thread, lane.mark.stamp.thread) != Distance::other_device) return kRace;
  return order_.is_pending(old.stamp, lane.place)       ? kRelaxed
         : order_.would_be_known(old.stamp, lane.place) ? kNarrow
                                                        : kRace;
}

// A strong read of a word that another device has written. A line that reads one word again and again is a wait; where
// the first look of a thread is its last, the flag was set. It must not have been so before this launch.
void Detector::note_wait(const Lane& lane) {
  const std::pair<uint32_t, uintptr_t> key{lane.mark.stamp.thread, lane.address};
  const auto known = first_looks_.find(key);
  if (known != first_looks_.end()) {
    if (known->second.look.site() == lane.mark.site()) spinning_.insert(lane.mark.site());
    known->second.is_stale = false;
    return;
  }
  Look look{lane.mark, {}, {}, "", lane.address, false};
  const auto flag = flags_.find(lane.address);
  if (flag != flags_.end() && flag->second.end.device != lane.place.block->device) {
    const Among& own = among_of_block(lane.place.block->sequence);
    const Stamp& set = flag->second.mark.stamp;
    const uint64_t block = order_.block_of(set.thread);
    look.kernel = own.info.kernel;
    look.flag = flag->second.end;
    look.is_stale = flag->second.epoch != epoch_ || own.info.comes_after(among_of_block(block).info.id) ||
                    own.known_at_start.knows(block, order_.thread_in_block(set.thread), set.clock);
  }
  first_looks_.emplace(key, std::move(look));
}

void Detector::report(What what, Space space, const Mark& earlier, const Mark* later, uintptr_t address) {
  const bool turned = what == kRace && later && is_later_in_program(earlier, *later);
  const Mark& first = turned ? *later : earlier;
  const Mark* second = turned ? &earlier : later;
  const Mark& last = second ? *second : first;
  const Distance far = distance(first.stamp.thread, last.stamp.thread);
  bool is_new = false;
  const std::string& kernel =
      several_devices_ ? among_of_block(order_.block_of(last.stamp.thread)).info.kernel : launch_.kernel;
  Hazard* hazard =
      list_.count(kernel, 2 * what + (space == Space::shared), sites_[first.site()], sites_[last.site()], far, is_new);
  if (!hazard || !is_new) return;
  const bool is_unwritten = what == kUninitialized || what == kUnwritten;
  hazard->what = is_unwritten ? "uninitialized" : "race";
  const bool first_writes = first.is(kWrites), last_writes = last.is(kWrites);
  const bool two_devices = far == Distance::other_device;
  hazard->detail = what == kEnded         ? "the block may have ended"
                   : what == kDeviceScope ? "an atomic of device scope, another device"
                   : what == kNarrow      ? "device scope, another device"
                   : what == kRelaxed     ? "a wait without acquire, another device"
                   : what == kRace && far == Distance::other_launch
                       ? (first_writes && last_writes ? "two launches write" : "a launch reads what another writes")
                   : what == kRace && two_devices
                       ? (first_writes && last_writes ? "two devices write" : "a device reads what another writes")
                   : is_unwritten            ? "read before any write"
                   : what == kOneInstruction ? "different values in one instruction"
                   : what == kScope          ? "an atomic of block scope, another block"
                   : what == kCopy ? (last_writes ? "write before a copy has landed" : "read before a copy has landed")
                   : far > Distance::same_block
                       ? (first_writes && last_writes ? "two blocks write" : "a block reads what another writes")
                   : !first_writes ? "write after read"
                   : last_writes   ? "write after write"
                                   : "read after write";
  hazard->space = space;
  hazard->address = address;
  hazard->variable = variable_text(address);
  hazard->first = end(first);
  hazard->has_second = second != nullptr;
  if (second) hazard->second = end(*second);
  hazard->sentence = sentence(what, first.is(kAtomic) != last.is(kAtomic), is_update(first, last), far);
}

void Detector::report_overlap(const PastLaunch& past, const Mark& old, const Mark& fresh, uintptr_t address) {
  bool is_new = false;
  Hazard* hazard = list_.count(launch_.kernel, 2 * kOverlap, sites_[old.site()], sites_[fresh.site()],
                               Distance::other_launch, is_new);
  if (!hazard || !is_new) return;
  hazard->what = "race";
  hazard->detail = !old.is(kWrites)    ? "a launch writes what an earlier one may still read"
                   : fresh.is(kWrites) ? "a launch writes what an earlier one may still write"
                                       : "a launch reads what an earlier one may still write";
  hazard->address = address;
  hazard->variable = variable_text(address);
  hazard->first = end(old, past.info.block, past.indices, past.thread_bits);
  hazard->has_second = true;
  hazard->second = end(fresh);
  hazard->sentence = launches_.sentence(past);
}

// Where others wait: the latest call of the warp, or of another one of its block.
Pc Detector::waits_at(const Fault& fault, bool in_its_warp) const {
  for (const auto& [warp, call] : calls_)
    if (warp.first == fault.where.block->number() && (warp.second == fault.where.warp) == in_its_warp) return call.pc;
  return 0;
}

void Detector::faulted(const Fault& fault) {
  Hazard hazard;
  hazard.what = name_of(fault.kind);
  const LaunchInfo& launch = several_devices_ ? among_of_launch(running_launch)->info : launch_;
  hazard.kernel = launch.kernel;
  if (several_devices_) hazard.first.device = launch.device;
  hazard.has_space = false;
  hazard.count = 1;
  hazard.sentence = fault.sentence;
  hazard.first.pc = fault.pc;
  hazard.first.file = fault.file;
  hazard.first.line = fault.line;
  hazard.second.pc = fault.other_pc;
  hazard.second.file = fault.other_file;
  hazard.second.line = fault.other_line;
  if (fault.where.block) {
    hazard.first.has_thread = true;
    hazard.first.thread = unflatten(32 * fault.where.warp + fault.lane, launch.block);
    hazard.first.block = fault.where.block->index;
    if (fault.kind == FaultKind::diverged && !hazard.second.pc) hazard.second.pc = waits_at(fault, false);
    // A thread leaves at the end of its function, wherever it decided to. The useful line is where the others wait for
    // it.
    if (fault.kind == FaultKind::left)
      if (const Pc pc = waits_at(fault, true)) hazard.first.pc = pc;
  }
  hazard.has_second = hazard.second.pc || !hazard.second.file.empty();
  list_.add(std::move(hazard));
}

Detector& detector() {
  static auto* detector = new Detector;  // asked at exit: never destroyed
  return *detector;
}

}  // namespace

Observer& hazards() { return detector(); }
std::string hazards_json() { return detector().json(); }

}  // namespace simt::analysis
