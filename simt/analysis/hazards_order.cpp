#include "hazards_order.h"

namespace simt::analysis {

namespace {

constexpr size_t kSharedLimit = 256 * 1024;  // more than a block can have
constexpr unsigned kMostThreads = 1024;      // of a block

uint64_t volume(dim3 d) { return static_cast<uint64_t>(d.x) * d.y * d.z; }

}  // namespace

void View::add(const View& other) {
  if (other.empty()) return;
  base = std::max(base, other.base);
  if (own.size() < other.own.size()) own.resize(other.own.size());
  for (size_t i = 0; i < other.own.size(); ++i) own[i] = std::max(own[i], other.own[i]);
  others.add(other.others);
  for_others_ = {};
}

const Knowledge& View::for_others(uint64_t own_block) const {
  if (for_others_.empty() && !empty()) {
    BlockKnowledge of_own{base, {}};
    for (size_t i = 0; i < own.size(); ++i)
      if (own[i] >= base) of_own.threads.emplace_back(static_cast<uint16_t>(i), own[i]);
    for_others_ = Knowledge(own_block, std::move(of_own));
    for_others_.add(others);
  }
  return for_others_;
}

void Order::begin_launch(const LaunchInfo& launch) {
  if (launch.joins_others) return;
  *this = Order();
  several_devices_ = launch.comes_after != nullptr;
  const auto threads = static_cast<unsigned>(volume(launch.block));
  while (1u << thread_bits_ < (several_devices_ ? kMostThreads : threads)) ++thread_bits_;
}

void Order::begin_block(const BlockInfo& info, const LaunchInfo& launch) {
  auto block = std::make_unique<BlockState>();
  block->sequence = info.number();
  block->launch = launch.id;
  block->device = launch.device;
  block->threads = static_cast<unsigned>(volume(launch.block));
  block->cluster_size = static_cast<unsigned>(volume(launch.cluster));
  block->shared_begin = info.shared_begin;
  block->warps.resize((block->threads + 31) / 32);
  if (block->cluster_size > 1) {
    // The last block whose shared memory was here may have left words in it.
    meetings_.erase(meetings_.lower_bound(info.shared_begin), meetings_.lower_bound(info.shared_begin + kSharedLimit));
    of_device_.erase(of_device_.lower_bound({block->device, info.shared_begin}),
                     of_device_.lower_bound({block->device, info.shared_begin + kSharedLimit}));
    const uint64_t first = block->sequence - info.cluster_rank;
    if (!newest_cluster_ || newest_cluster_->first_block != first) {
      newest_cluster_ = std::make_shared<ClusterState>();
      newest_cluster_->number = info.cluster;
      newest_cluster_->first_block = first;
      newest_cluster_->threads = block->threads;
      for (auto& phase : newest_cluster_->arrivals)
        phase.resize(static_cast<size_t>(block->cluster_size) * block->threads);
    }
    block->cluster = newest_cluster_;
  }
  latest_ = block.get();
  blocks_[block->sequence] = std::move(block);
}

void Order::end_block(const BlockInfo& block) {
  latest_ = nullptr;
  blocks_.erase(block.number());
}

BlockState* Order::block(uint64_t sequence) {
  if (latest_ && latest_->sequence == sequence) return latest_;
  const auto found = blocks_.find(sequence);
  return latest_ = found == blocks_.end() ? nullptr : found->second.get();
}

Order::Place Order::place(WarpRef where, unsigned lane) {
  BlockState* state = block(where.block->number());
  return {state, &state->warps[where.warp], where.warp, lane};
}

// --- The question --------------------------------------------------------------------------------------------------

bool Order::is_before(const Stamp& past, const Place& place) const {
  const uint32_t thread = number(place);
  if (past.thread == thread) return true;
  const uint32_t other_bits = past.thread ^ thread;
  if (other_bits >> thread_bits_ == 0) {
    if (past.clock < place.block->base) return true;
    if (other_bits < 32 && past.clock < place.warp->base) return true;
    if (place.warp->lanes) {
      const std::vector<Clock>& own = place.warp->lanes[place.lane].known.own;
      const unsigned other = thread_in_block(past.thread);
      if (other < own.size() && past.clock <= own[other]) return true;
    }
  }
  return is_before_elsewhere(past, place);
}

bool Order::is_before_elsewhere(const Stamp& past, const Place& place) const {
  const uint64_t block = block_of(past.thread);
  const unsigned thread = thread_in_block(past.thread);
  if (grid_barriers_ && block != place.block->sequence) {
    const auto found = blocks_.find(block);
    if (found != blocks_.end() && found->second->launch == place.block->launch && past.clock < found->second->grid_base)
      return true;
  }
  if (const ClusterState* cluster = place.block->cluster.get()) {
    const uint32_t phase = place.warp->waited[place.lane];
    const uint64_t rank = block - cluster->first_block;
    if (phase && rank < place.block->cluster_size && past.clock <= arrival(*cluster, phase, rank, thread)) return true;
  }
  return views(place).known.others.knows(block, thread, past.clock);
}

bool Order::is_before_the_end(const Stamp& past, BlockState& block) const {
  for (unsigned thread = 0; thread < block.threads; ++thread)
    if (is_before(past, {&block, &block.warps[thread / 32], thread / 32, thread % 32})) return true;
  return false;
}

bool Order::owns(const BlockState& block, uintptr_t shared) const { return shared - block.shared_begin < kSharedLimit; }

const BlockState* Order::owner_of(const BlockState& one, uintptr_t shared) {
  for (unsigned rank = 0; one.cluster && rank < one.cluster_size; ++rank) {
    const BlockState* other = block(one.cluster->first_block + rank);
    if (other && owns(*other, shared)) return other;
  }
  return nullptr;
}

// --- Barriers ------------------------------------------------------------------------------------------------------

Clock Order::tick(const Place& p) {
  const Clock before = clock(p);
  p.warp->clock[p.lane] = before + 1;
  p.warp->newest = std::max(p.warp->newest, before + 1);
  p.block->newest = std::max(p.block->newest, before + 1);
  return before;
}

void Order::block_barrier(BlockState& block) {
  block.base = ++block.newest;
  if (!block.lanes_differ) return;
  for (WarpState& warp : block.warps) {
    if (!warp.lanes) continue;
    for (unsigned lane = 0; lane < 32; ++lane) block.views.add(warp.lanes[lane]);
    warp.lanes.reset();
  }
  block.views.known.own.clear();
  block.lanes_differ = false;
}

void Order::warp_barrier(WarpRef where, uint32_t mask) {
  const Place first = place(where, 0);
  BlockState& block = *first.block;
  WarpState& warp = *first.warp;
  const unsigned lanes = std::min(32u, block.threads - 32 * where.warp);
  const uint32_t all = lanes == 32 ? ~0u : (1u << lanes) - 1;
  const bool whole = (mask & all) == all;
  if (!whole || warp.lanes) {
    Views sum;
    for (uint32_t left = mask & all; left; left &= left - 1) {
      const Place p = place(where, static_cast<unsigned>(__builtin_ctz(left)));
      sum.add(views(p));
      if (!whole) sum.known.add(everything_known(p));
    }
    own_views(first);
    for (uint32_t left = mask & all; left; left &= left - 1) {
      const Place p = place(where, static_cast<unsigned>(__builtin_ctz(left)));
      own_views(p).add(sum);
      if (!whole) tick(p);
    }
  }
  if (whole) {
    warp.base = warp.newest = std::max(warp.newest, block.base) + 1;
    block.newest = std::max(block.newest, warp.base);
  }
}

void Order::cluster_arrive(const Place& p) {
  ClusterState* cluster = p.block->cluster.get();
  if (!cluster) {
    release(p, p.block->shared_begin + kSharedLimit - 1);  // a cluster of one block: a barrier of its own
    return;
  }
  const uint32_t phase = ++p.warp->arrived[p.lane];
  cluster->known_after[phase % 3] = {};
  cluster->arrivals[phase % 3][(p.block->sequence - cluster->first_block) * p.block->threads + p.thread()] = tick(p);
  meet_in_cluster(p);
}

void Order::cluster_exit(const Place& p) {
  ClusterState* cluster = p.block->cluster.get();
  if (!cluster) return;
  const size_t index = (p.block->sequence - cluster->first_block) * p.block->threads + p.thread();
  cluster->exits[index] = {p.warp->arrived[p.lane], tick(p)};
  meet_in_cluster(p);
}

void Order::meet_in_cluster(const Place& p) {
  const Views& own = views(p);
  Views& meeting = p.block->cluster->meeting;
  meeting.known.others.add(own.known.others);
  meeting.published.others.add(own.published.for_others(p.block->sequence));
}

Clock Order::arrival(const ClusterState& cluster, uint32_t phase, uint64_t rank, unsigned thread) const {
  const size_t index = rank * cluster.threads + thread;
  const auto exit = cluster.exits.empty() ? cluster.exits.end() : cluster.exits.find(index);
  return exit != cluster.exits.end() && phase > exit->second.phase ? exit->second.clock
                                                                   : cluster.arrivals[phase % 3][index];
}

void Order::cluster_wait(const Place& p) {
  ClusterState* cluster = p.block->cluster.get();
  if (!cluster) {
    acquire(p, p.block->shared_begin + kSharedLimit - 1);
    return;
  }
  p.warp->waited[p.lane] = p.warp->arrived[p.lane];
  if (!cluster->meeting.known.empty() || !cluster->meeting.published.empty()) own_views(p).add(cluster->meeting);
}

const Knowledge& Order::known_after_cluster_barrier(const Place& p) const {
  static const Knowledge nothing;
  ClusterState* cluster = p.block->cluster.get();
  const uint32_t phase = p.warp->waited[p.lane];
  if (!cluster || !phase) return nothing;
  Knowledge& known = cluster->known_after[phase % 3];
  if (!known.empty()) return known;
  for (unsigned rank = 0; rank < p.block->cluster_size; ++rank) {
    std::vector<Clock> arrivals(p.block->threads);
    for (unsigned thread = 0; thread < p.block->threads; ++thread)
      arrivals[thread] = arrival(*cluster, phase, rank, thread);
    BlockKnowledge of_block{*std::min_element(arrivals.begin(), arrivals.end()) + 1, {}};
    for (unsigned thread = 0; thread < p.block->threads; ++thread)
      if (arrivals[thread] >= of_block.bound)
        of_block.threads.emplace_back(static_cast<uint16_t>(thread), arrivals[thread]);
    known.add(Knowledge(cluster->first_block + rank, std::move(of_block)));
  }
  return known;
}

void Order::grid_barrier(uint64_t launch) {
  grid_barriers_ = true;
  for (auto& [sequence, block] : blocks_) {
    if (several_devices_ && block->launch != launch) continue;
    block_barrier(*block);
    block->grid_base = block->base;
  }
}

// --- Fences, atomics, barriers in memory -----------------------------------------------------------------------------

View Order::everything_known(const Place& p) const {
  View all = views(p).known;
  all.base = p.block->base;
  all.own.resize(p.block->threads);
  const unsigned first = 32 * p.warp_number;
  if (p.warp->base > p.block->base)
    for (unsigned thread = first; thread < std::min(first + 32, p.block->threads); ++thread)
      all.own[thread] = std::max(all.own[thread], p.warp->base - 1);
  all.own[p.thread()] = clock(p);
  all.others.add(known_after_cluster_barrier(p));
  View fresh;  // without what was made for others before
  fresh.add(all);
  return fresh;
}

Views& Order::own_views(const Place& p) {
  if (!p.warp->lanes) {
    p.warp->lanes = std::make_unique<Views[]>(32);
    for (unsigned lane = 0; lane < 32; ++lane) p.warp->lanes[lane] = p.block->views;
    p.block->lanes_differ = true;
  }
  return p.warp->lanes[p.lane];
}

void Order::fence(const Place& p, FenceScope scope) {
  Views& own = own_views(p);
  if (scope == FenceScope::system && !own.pending.empty()) {
    own.known.add(own.pending);
    own.pending = {};
  }
  const View known = everything_known(p);
  own.published_in_block.add(known);
  if (scope != FenceScope::block) own.published.add(known);
  if (several_devices_ && scope == FenceScope::system) own.published_in_system.add(known);
  tick(p);
  p.warp->fenced[p.lane] = clock(p);
}

// Only the threads of the block can meet there.
bool Order::is_narrow(const BlockState& block, uintptr_t object) const { return !block.cluster && owns(block, object); }

Views* Order::find(const Place& p, uintptr_t object) {
  if (is_narrow(*p.block, object)) {
    const auto found = p.block->meetings.find(object);
    return found == p.block->meetings.end() ? nullptr : &found->second;
  }
  if (several_devices_) {
    const auto found = of_device_.find({p.block->device, object});
    return found == of_device_.end() ? nullptr : &found->second;
  }
  const auto found = meetings_.find(object);
  return found == meetings_.end() ? nullptr : &found->second;
}

Views& Order::at(const Place& p, uintptr_t object) {
  return is_narrow(*p.block, object) ? p.block->meetings[object] : global_meeting(p, object);
}

void Order::acquire(const Place& p, uintptr_t object, bool everywhere, bool at_once) {
  if (const Views* meeting = find(p, object)) own_views(p).add(*meeting);
  if (!several_devices_ || is_narrow(*p.block, object)) return;
  const auto wider = with_wider_scopes_.find(object);
  if (wider == with_wider_scopes_.end()) return;
  own_views(p).with_wider_scopes.others.add(wider->second);
  const auto found = everywhere ? everywhere_.find(object) : everywhere_.end();
  if (found == everywhere_.end()) return;
  Views& own = own_views(p);
  if (at_once) {
    for (View* view : {&own.known, &own.published_in_block, &own.published, &own.published_in_system}) {
      View brought;
      brought.others = found->second;
      view->add(brought);
    }
  } else {
    own.pending.others.add(found->second);
  }
}

bool Order::is_pending(const Stamp& past, const Place& p) const {
  return views(p).pending.others.knows(block_of(past.thread), thread_in_block(past.thread), past.clock);
}
bool Order::would_be_known(const Stamp& past, const Place& p) const {
  return views(p).with_wider_scopes.others.knows(block_of(past.thread), thread_in_block(past.thread), past.clock);
}

void Order::release(const Place& p, uintptr_t object, bool everywhere) {
  const View known = everything_known(p);
  if (several_devices_ && !is_narrow(*p.block, object)) {
    const Knowledge& all = known.for_others(p.block->sequence);
    with_wider_scopes_[object].add(all);
    with_wider_scopes_[object].add(views(p).with_wider_scopes.others);
    if (everywhere) everywhere_[object].add(all);
  }
  Views& meeting = at(p, object);
  if (is_narrow(*p.block, object)) {
    meeting.known.add(known);
    meeting.published_in_block.add(known);
    meeting.published.add(views(p).published);
  } else {
    const Knowledge& all = known.for_others(p.block->sequence);
    meeting.known.others.add(all);
    meeting.published_in_block.others.add(all);
    meeting.published.others.add(all);
  }
  tick(p);
}

void Order::publish(const Place& p, uintptr_t object, bool everywhere) {
  const Views& own = views(p);
  if (several_devices_ && !is_narrow(*p.block, object) && !own.published_in_block.empty()) {
    with_wider_scopes_[object].add(own.published_in_block.for_others(p.block->sequence));
    with_wider_scopes_[object].add(own.with_wider_scopes.others);
    if (everywhere && !own.published_in_system.empty())
      everywhere_[object].add(own.published_in_system.for_others(p.block->sequence));
  }
  if (is_narrow(*p.block, object)) {
    if (own.published_in_block.empty()) return;
    Views& meeting = at(p, object);
    meeting.known.add(own.published_in_block);
    meeting.published_in_block.add(own.published_in_block);
    meeting.published.add(own.published);
  } else {
    if (own.published.empty()) return;
    const Knowledge& all = own.published.for_others(p.block->sequence);
    Views& meeting = at(p, object);
    meeting.known.others.add(all);
    meeting.published_in_block.others.add(all);
    meeting.published.others.add(all);
  }
}

void Order::release_past(const Place& p, const Stamp& past, uintptr_t object) {
  View known;
  const unsigned thread = thread_in_block(past.thread);
  if (is_narrow(*p.block, object)) {
    known.own.resize(p.block->threads);
    known.own[thread] = past.clock;
  } else {
    BlockKnowledge of_block;
    of_block.threads.emplace_back(static_cast<uint16_t>(thread), past.clock);
    known.others = Knowledge(block_of(past.thread), std::move(of_block));
  }
  at(p, object).known.add(known);
}

}  // namespace simt::analysis
