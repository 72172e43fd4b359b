#include "hazards_launches.h"

#include <algorithm>

namespace simt::analysis {

namespace {

// ns::kernel<int> of "void ns::kernel<int>(int*)"
std::string short_name(std::string kernel) {
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = kernel.find(anonymous)) != std::string::npos;) kernel.erase(at, anonymous.size());
  const std::string name = kernel.substr(0, kernel.find_first_of("<("));
  const size_t space = name.rfind(' ');
  return space == std::string::npos ? name : name.substr(space + 1);
}

}  // namespace

void Launches::begin(const LaunchInfo& launch) {
  conduct_ = std::make_shared<Conduct>();
  conduct_->kernel = short_name(launch.kernel);
  at_start_.clear();
  blocks_.clear();
  const auto before = !launch.overlaps ? streams_.end() : std::find_if(streams_.begin(), streams_.end(), [&](auto& s) {
    return s.second.newest && s.second.newest->id == launch.overlaps;
  });
  if (before != streams_.end()) {
    const OfStream& of = before->second;
    Running older = of.before_it;
    if (!of.newest->conduct->starts_next_early) remove_ended(older);
    at_start_ = {of.newest};
    at_start_.insert(at_start_.end(), older.begin(), older.end());
    of.newest->of_next = conduct_;
  }
  after_wait_ = at_start_;
  remove_ended(after_wait_);
  streams_[launch.stream] = {};
}

// The first has ended, and with it the launch that it has waited for, and so on.
void Launches::remove_ended(Running& running) {
  while (!running.empty()) {
    const bool waited = running.front()->conduct->waited;
    running.erase(running.begin());
    if (!waited) return;
  }
}

void Launches::end(const LaunchInfo& launch, unsigned thread_bits, std::vector<uint3> indices, Shadow& shadow) {
  auto past = std::make_shared<PastLaunch>();
  past->id = launch.id;
  past->info = launch;
  past->indices = std::move(indices);
  past->thread_bits = thread_bits;
  past->shadow = shadow.take_global();
  past->conduct = conduct_;
  streams_[launch.stream] = {std::move(past), at_start_};
  at_start_.clear();
  after_wait_.clear();
  make_room();
}

void Launches::make_room() {
  std::map<uint64_t, PastLaunch*> all;
  size_t bytes = 0;
  for (const auto& [stream, of] : streams_) {
    if (of.newest) all[of.newest->id] = of.newest.get();
    for (const auto& past : of.before_it) all[past->id] = past.get();
  }
  for (const auto& [id, past] : all) bytes += past->shadow.bytes();
  for (auto oldest = all.begin(); bytes > Shadow::kBudget && oldest != all.end(); ++oldest) {
    bytes -= oldest->second->shadow.bytes();
    oldest->second->shadow.clear();
  }
}

bool Launches::has_waited(const Order& order, const Order::Place& place) {
  const unsigned thread = place.thread();
  const auto comes_after = [&](const OfBlock& of) {
    return std::any_of(of.waits.begin(), of.waits.end(), [&](const Stamp& s) { return order.is_before(s, place); });
  };
  const auto own = blocks_.find(place.block->sequence);
  if (own != blocks_.end() && thread < own->second.waited.size() && own->second.waited[thread]) return true;
  const bool others = order.knows_others(place);
  const bool has = others ? std::any_of(blocks_.begin(), blocks_.end(), [&](auto& b) { return comes_after(b.second); })
                          : own != blocks_.end() && comes_after(own->second);
  if (has) {
    OfBlock& of = blocks_[place.block->sequence];
    of.waited.resize(std::max<size_t>(of.waited.size(), place.block->threads));
    of.waited[thread] = true;
  }
  return has;
}

void Launches::wait(const Order& order, const Order::Place& place) {
  conduct_->waited = true;
  if (at_start_.empty()) return;
  OfBlock& of = blocks_[place.block->sequence];
  of.waited.resize(place.block->threads);
  of.waited[place.thread()] = true;
  of.waits.push_back(order.now(place));
}

void Launches::let_next_start(const Order& order, const Order::Place& place) {
  if (at_start_.empty()) return;
  const bool late = has_waited(order, place);
  OfBlock& of = blocks_[place.block->sequence];
  of.lets_next_start = true;
  of.too_early = of.too_early || !late;
}

// The next launch starts when all blocks have let it: one that has waited by then is enough.
void Launches::end_block(uint64_t block) {
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  OfBlock& of = found->second;
  const bool waits_first = of.lets_next_start ? !of.too_early : !of.waits.empty();
  if (waits_first) conduct_->starts_next_early = false;
  of.waited = {};
  if (of.waits.size() > 1) of.waits.resize(1);  // enough for the blocks that come after this one
}

std::string Launches::sentence(const PastLaunch& past) const {
  const std::string &earlier = past.conduct->kernel, &next = past.of_next->kernel,
                    may_run = earlier + " may still run here";
  if (past.of_next == conduct_)
    return may_run + ": this kernel is a dependent launch, and starts before " + earlier +
           ", the launch before it, has ended. Call cudaGridDependencySynchronize() before this line.";
  return may_run + ", though it is not the launch directly before this one: " + next + ", the launch after " + earlier +
         (past.of_next->waited ? ", lets the next kernel start before it has waited itself. In "
                               : ", never waits for it. In ") +
         next + ", call cudaGridDependencySynchronize() before cudaTriggerProgrammaticLaunchCompletion().";
}

}  // namespace simt::analysis
