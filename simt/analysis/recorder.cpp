#include "recorder.h"

#include <algorithm>
#include <cstring>

namespace simt::analysis {

namespace {

bool same_place(const Event& a, const Event& b) {
  return a.pc == b.pc && a.is_operation == b.is_operation && a.operation == b.operation && a.space == b.space &&
         a.kind == b.kind && a.size == b.size && a.is_async == b.is_async && a.overwrites == b.overwrites;
}

}  // namespace

Recorder& recorder() {
  static auto* recorder = new Recorder;
  return *recorder;
}

void Recorder::lane_ran(unsigned lane) {
  for (Event& event : lanes_[lane])
    if (event.kind == Kind::store && !event.is_async && event.size <= kLargestAccess)
      std::memcpy(event.stored, reinterpret_cast<const void*>(event.address), event.size);
}

void Recorder::clear() {
  for (auto& events : lanes_) events.clear();
}

void Recorder::tell_group(WarpRef where, uint32_t mask, const Event* const* events) {
  const Event& first = *events[__builtin_ctz(mask)];
  if (first.is_operation) {
    const OperationCall call{where, first.pc, first.operation, mask};
    tell([&](Observer& o) { o.called(call); });
    return;
  }
  Request request{};
  static_cast<Access&>(request) = first;
  request.where = where;
  request.pc = first.pc;
  request.space = first.space;
  request.size = first.size;
  request.mask = mask;
  const bool has_values =
      first.kind == Kind::store && !first.is_async && !first.overwrites && first.size <= kLargestAccess;
  if (has_values) stored_.resize(32 * kLargestAccess);
  for (uint32_t left = mask; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    request.address[lane] = events[lane]->address;
    if (events[lane]->is_unwritten) request.unwritten |= 1u << lane;
    if (has_values) std::memcpy(&stored_[static_cast<unsigned>(lane) * first.size], events[lane]->stored, first.size);
  }
  if (has_values) request.stored = stored_.data();
  tell([&](Observer& o) { o.request(request); });
}

// Lanes that took one path have equal lists. If the lists differ, the n-th event of a lane at a place is matched with
// the n-th event of the others there.
void Recorder::flush(WarpRef where) {
  uint32_t active = 0;
  size_t longest = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (lanes_[lane].empty()) continue;
    active |= 1u << lane;
    longest = std::max(longest, lanes_[lane].size());
  }
  if (!active) return;
  const std::vector<Event>& leader = lanes_[__builtin_ctz(active)];
  bool equal = true;
  for (uint32_t left = active; left && equal; left &= left - 1) {
    const std::vector<Event>& events = lanes_[__builtin_ctz(left)];
    equal = events.size() == leader.size() && std::equal(events.begin(), events.end(), leader.begin(), same_place);
  }
  const Event* group[32] = {};
  if (equal) {
    for (size_t i = 0; i < longest; ++i) {
      for (uint32_t left = active; left; left &= left - 1) group[__builtin_ctz(left)] = &lanes_[__builtin_ctz(left)][i];
      tell_group(where, active, group);
    }
  } else {
    std::vector<bool> told[32];
    for (unsigned lane = 0; lane < 32; ++lane) told[lane].resize(lanes_[lane].size());
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (size_t i = 0; i < lanes_[lane].size(); ++i) {
        if (told[lane][i]) continue;
        uint32_t mask = 0;
        for (unsigned other = lane; other < 32; ++other) {
          for (size_t k = 0; k < lanes_[other].size(); ++k) {
            if (told[other][k] || !same_place(lanes_[lane][i], lanes_[other][k])) continue;
            told[other][k] = true;
            group[other] = &lanes_[other][k];
            mask |= 1u << other;
            break;
          }
        }
        tell_group(where, mask, group);
      }
    }
  }
  clear();
}

}  // namespace simt::analysis
