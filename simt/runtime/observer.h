// What happens in a kernel. The device reports these events in the order in which it runs the kernel, and every
// observer, of which the analysis has some, gets all of them, one call at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simt/analysis.h"
#include "vector_types.h"

namespace simt::analysis {

// The return address of the call that reported the event; the dump turns it into an offset into the program's file.
using Pc = uintptr_t;

enum class Space : uint8_t { global, shared };  // local memory and parameters are not reported
enum class Kind : uint8_t { load, store, atomic };

struct LaunchInfo {
  uint64_t id;
  std::string kernel;
  dim3 grid, block, cluster;
  size_t dynamic_shared;
  bool cooperative;
  uint64_t overlaps;  // the launch directly before it, if it may start before that one has ended; 0 otherwise
  uintptr_t stream;
  // With several devices.
  int device = 0;
  uint64_t first_block = 0;   // blocks have numbers of their own among all launches that may run at once
  bool joins_others = false;  // what ran before may run at the same time on GPUs
  std::function<bool(uint64_t)> comes_after =
      nullptr;  // the end of the launch with this id: by streams, events and waits
};

// A block of the running launch. `sequence` numbers the blocks of a launch; those of a cluster have successive numbers.
struct BlockInfo {
  uint64_t sequence;
  uint3 index;
  uint64_t cluster;          // number of its cluster; its own sequence where the launch has none
  uint32_t cluster_rank;     // 0 where the launch has no clusters
  uintptr_t shared_begin;    // its shared memory
  size_t shared_size;        // static and dynamic, as far as declared by now
  uint64_t first_block = 0;  // of its launch

  uint64_t number() const { return first_block + sequence; }
};

struct WarpRef {
  const BlockInfo* block;
  uint32_t warp;  // number in its block: its lane l is thread 32 * warp + l
};

// How memory is accessed, wherever it is.
struct Access {
  Kind kind = Kind::load;
  bool is_volatile = false;
  bool is_async = false;                    // a cp.async or bulk copy: the lane does not wait for it
  bool acquires = false, releases = false;  // atomics with an order; CUDA's atomicAdd and its kin have neither
  bool overwrites = false;                  // an atomic store or exchange: it does not ask what was there
  bool of_block = false;                    // an atomic that is one only for the threads of its block
  bool of_device = false;                   // or of its device
};

// One memory instruction of one warp: what its lanes ask for together.
struct Request : Access {
  WarpRef where;
  Pc pc;
  Space space;
  uint32_t size;          // bytes a lane asks for
  uint32_t mask;          // the lanes that take part
  uintptr_t address[32];  // of those lanes
  // For a store, if known: what lane l has stored, `size` bytes at stored + l * size, read when its step was over.
  const unsigned char* stored = nullptr;
  // The lanes that read memory of which nothing has written a byte since it was allocated.
  uint32_t unwritten = 0;
};

struct OperationCall {
  WarpRef where;
  Pc pc;
  Operation operation;
  uint32_t mask;
};

enum class FenceScope : uint8_t { block, device, system };

// What ended a kernel.
enum class FaultKind : uint8_t {
  other,
  out_of_bounds,  // global memory
  out_of_shared,
  out_of_array,  // whose size the compiler knows
  misaligned,
  barrier,   // one that not all threads reach
  diverged,  // two at once
  mask,
  left,  // a thread exits while lanes of its warp wait for it
  timeout
};

// As the results call it.
inline const char* name_of(FaultKind kind) {
  switch (kind) {
    case FaultKind::out_of_bounds:
    case FaultKind::out_of_shared:
    case FaultKind::out_of_array:
      return "out_of_bounds";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::barrier:
    case FaultKind::diverged:
      return "barrier";
    case FaultKind::mask:
    case FaultKind::left:
      return "mask";
    case FaultKind::timeout:
      return "timeout";
    case FaultKind::other:
      break;
  }
  return "fault";
}

// Whether only the kernel's own shared memory or threads are concerned: what runs after it means something.
inline bool stays_in_its_kernel(FaultKind kind) {
  return kind != FaultKind::other && kind != FaultKind::out_of_bounds && kind != FaultKind::timeout;
}

class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begins(const LaunchInfo&) {}
  virtual void launch_ends() {}
  virtual void block_begins(const BlockInfo&) {}
  virtual void block_ends(const BlockInfo&) {}

  virtual void request(const Request&) {}
  virtual void called(const OperationCall&) {}
  // The lanes of one warp that ran one basic block together.
  virtual void ran(WarpRef, Pc, uint32_t /*mask*/) {}

  // What orders memory accesses, reported when it happens.
  virtual void block_barrier_completed(const BlockInfo&) {}
  virtual void warp_synchronized(WarpRef, uint32_t /*mask*/) {}  // __syncwarp; shuffles and votes order nothing
  virtual void cluster_barrier_arrived(WarpRef, unsigned /*lane*/) {}
  virtual void cluster_barrier_waited(WarpRef, unsigned /*lane*/) {}
  virtual void left_cluster(WarpRef, unsigned /*lane*/) {}  // it has exited, and counts as arrived from now on
  virtual void grid_barrier_completed() {}
  virtual void fenced(WarpRef, unsigned /*lane*/, FenceScope) {}
  // Of dependent launches: a lane has waited for the launch before, or lets the next one start.
  virtual void waited_for_launch(WarpRef, unsigned /*lane*/) {}
  virtual void let_next_launch_start(WarpRef, unsigned /*lane*/) {}
  // A lane arrives at, or has seen the end of a phase of, a barrier in memory (cuda::barrier, mbarrier, pipeline).
  virtual void released(WarpRef, unsigned /*lane*/, const void* /*object*/) {}
  virtual void acquired(WarpRef, unsigned /*lane*/, const void* /*object*/) {}

  // An asynchronous copy has landed: at its lane's own wait (no object), or when a lane found that the phase of the
  // barrier in memory that it was bound to has ended. It was reported as an asynchronous store when it was issued.
  virtual void landed(WarpRef, unsigned /*lane*/, const void* /*destination*/, size_t /*size*/,
                      const void* /*object*/) {}

  // The runtime has ended the kernel with an error and a sentence; `pcs` are the lines that it concerns, the offending
  // one first. file and line are set where the runtime knows them itself.
  struct Fault {
    WarpRef where;
    unsigned lane;
    int error;
    std::string sentence;
    std::string file;
    int line;
    Pc pc;
    FaultKind kind;
    // The other party, if there is one: a barrier or a shuffle at which other threads wait.
    std::string other_file;
    int other_line;
    Pc other_pc;
  };
  virtual void faulted(const Fault&) {}
};

// Stands where a thread launches a kernel, which takes memory and looks up names: a signal that ends the program waits
// for the kernel's next step, or for its end.
struct Launching {
  Launching();
  ~Launching();
};

// The observers, in the order in which they get the events.
const std::vector<Observer*>& observers();
void add_observer(Observer* observer);
inline uint64_t running_launch = 0;  // with several devices: whose events these are
inline bool is_telling = false;      // observers may be instrumented themselves: then nothing is noted
template <class Tell>
void tell(Tell tell) {
  is_telling = true;
  for (Observer* observer : observers()) tell(*observer);
  is_telling = false;
}

}  // namespace simt::analysis
