// Dependent launches: which of the launches before one may still run while it does, and what they access.
//
// A dependent launch may start as soon as each block of the launch before it has let it
// (cudaTriggerProgrammaticLaunchCompletion) or has ended, and goes on past its wait (cudaGridDependencySynchronize)
// when that launch has ended. The CPU device runs them one after the other. So this keeps what the launches have
// accessed that could still run on a GPU, and knows of each thread whether it has waited.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hazards_order.h"
#include "hazards_shadow.h"
#include "observer.h"

namespace simt::analysis {

// How a launch kept its place in the order. Until it has run, nothing is known to have happened.
struct Conduct {
  std::string kernel;
  bool waited = false;            // one of its threads, so that it ended after the launch before it
  bool starts_next_early = true;  // each block has let the next launch start, or has ended, before any had waited
};

struct PastLaunch {
  uint64_t id;
  LaunchInfo info;
  std::vector<uint3> indices;  // of its blocks
  unsigned thread_bits;
  Shadow shadow;
  std::shared_ptr<const Conduct> conduct, of_next;  // of itself, and of the launch that came after it
};

class Launches {
 public:
  using Running = std::vector<std::shared_ptr<PastLaunch>>;  // the newest first; empty: all launches before have ended

  void begin(const LaunchInfo& launch);
  void end(const LaunchInfo& launch, unsigned thread_bits, std::vector<uint3> indices, Shadow& shadow);
  void end_block(uint64_t block);
  void wait(const Order& order, const Order::Place& place);
  void let_next_start(const Order& order, const Order::Place& place);

  // Those that may still run when a lane is where it is.
  bool none_may_run() const { return at_start_.empty(); }
  const Running& may_run(const Order& order, const Order::Place& place) {
    return at_start_.empty() || !has_waited(order, place) ? at_start_ : after_wait_;
  }

  // A sentence about an access of this launch that `past` makes dangerous.
  std::string sentence(const PastLaunch& past) const;

 private:
  struct OfBlock {
    std::vector<bool> waited;  // by thread: it, or one before it
    std::vector<Stamp> waits;
    bool lets_next_start = false, too_early = false;
  };
  struct OfStream {
    std::shared_ptr<PastLaunch> newest;
    Running before_it;  // that may have run when it began
  };

  bool has_waited(const Order& order, const Order::Place& place);
  static void remove_ended(Running& running);  // after a wait for the first of them
  void make_room();

  std::map<uintptr_t, OfStream> streams_;
  Running at_start_, after_wait_;
  std::shared_ptr<Conduct> conduct_;
  std::unordered_map<uint64_t, OfBlock> blocks_;
};

}  // namespace simt::analysis
