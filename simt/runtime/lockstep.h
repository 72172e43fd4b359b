// What the scheduler also knows of lanes and warps in an analysis build, where the lanes of a warp run in lockstep, and
// what it reports to the analysis. In an ordinary build all of this is empty.
//
// A lane runs up to the end of its basic block, then waits for its turn. Of the lanes of a warp that can run, those
// with the deepest stack go first, of these those with the lowest program counter: so lanes that took different
// branches meet again where the branches do. The lanes that run one block together make a *step*.
#pragma once
#include <cstddef>
#include <cstdint>

#include "simt/analysis.h"
#ifdef SIMT_ANALYSIS
#include <string>

#include "observer.h"
#endif

namespace simt {

class Worker;
struct Block;
struct Launch;

#ifdef SIMT_ANALYSIS

namespace analysis {

// A call from the program: where it returns to, and the frame of the function called, with the end of its stack.
struct Call {
  uintptr_t pc;
  const void* frame;
  const char* stack_end;
};

// The name of what is at an address, "tile" or "cudaMalloc of 4096 bytes", and where that begins.
struct Named {
  std::string base;
  uintptr_t begin;
};

LaunchInfo describe(Launch& launch);

}  // namespace analysis

// The call of the function that this stands in; that it is a call of one of the device's operations; an event.
#define SIMT_CALL_HERE(worker)                                                            \
  simt::analysis::Call {                                                                  \
    reinterpret_cast<uintptr_t>(__builtin_return_address(0)), __builtin_frame_address(0), \
        (worker).lane->stack + simt::kStackSize                                           \
  }
#define SIMT_ENTER(worker, operation) (worker).enter(simt::analysis::Operation::operation, SIMT_CALL_HERE(worker))
// What kind of fault the worker is about to report, and the lane that waits elsewhere.
#define SIMT_FAULT(kind, other) (fault_kind_ = simt::analysis::FaultKind::kind, fault_other_ = (other))
#define SIMT_TELL(event) simt::analysis::tell([&](simt::analysis::Observer& o) { o.event; })

struct LaneStep {
  void begins_on(const char* its_stack, const void* its_top) {
    stack = its_stack;
    top = static_cast<const char*>(its_top);
  }
  void waits_no_more() { resumes = true, starts_block = false; }

  const char *stack = nullptr, *top = nullptr;  // that it runs on: the memory, and where its frames begin
  // Where it goes on: lanes that are equal in all of these go on together.
  size_t depth = 0;
  uintptr_t pc = 0;
  bool resumes = false;       // after a call that waited, not before it
  bool starts_block = false;  // a basic block begins here
  // What it polled last, and how often it has seen the same since it changed anything.
  struct Polled {
    uintptr_t address;
    uint64_t value;
  } polled[4] = {};
  unsigned next_polled = 0, idle = 0;
};

// A __shared__ variable's place in a block's memory.
struct SharedName {
  size_t offset, size;
  std::string name;
};

struct WarpStep {
  uint32_t step = 0;      // scheduling positions of lanes that have yet to run in this step
  uint32_t together = 0;  // lanes of this step
  uint32_t yielded = 0;   // scheduling positions of lanes that let the others go first
  unsigned streak = 0;    // steps since another warp ran
};

#else

#define SIMT_ENTER(worker, operation) static_cast<void>(0)
#define SIMT_TELL(event) static_cast<void>(0)
#define SIMT_FAULT(kind, other) static_cast<void>(0)
struct LaneStep {
  void begins_on(const char*, const void*) {}
  void waits_no_more() {}
};
struct WarpStep {};

#endif

}  // namespace simt
