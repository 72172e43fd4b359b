// Gathers what the lanes of a step do and reports it to the observers, warp by warp.
#pragma once
#include <vector>

#include "observer.h"

namespace simt::analysis {

constexpr uint32_t kLargestAccess = 16;  // bytes; what is larger is taken apart

// What a lane did: an access to memory, or a call of an operation.
struct Event : Access {
  Pc pc;
  bool is_operation = false;
  Operation operation = Operation::other;
  Space space = Space::global;
  uint32_t size = 0;
  uintptr_t address = 0;
  unsigned char stored[kLargestAccess] = {};
  bool is_unwritten = false;  // it reads what nothing has written
};

class Recorder {
 public:
  void record(unsigned lane, const Event& event) { lanes_[lane].push_back(event); }
  void lane_ran(unsigned lane);  // to the end of its step: what it stored is there
  void flush(WarpRef where);     // all lanes of the step ran
  void clear();

 private:
  void tell_group(WarpRef where, uint32_t mask, const Event* const* events);

  std::vector<Event> lanes_[32];
  std::vector<unsigned char> stored_;
};
Recorder& recorder();

}  // namespace simt::analysis
