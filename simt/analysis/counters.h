// Counts what a profiler would: requests, sectors, wavefronts, operations and divergence, per kernel and per call site.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "observer.h"

namespace simt::analysis {

// The 32-byte sectors that a request touches, and the fewest that its distinct bytes could need.
struct Sectors {
  unsigned touched, ideal;
};
Sectors sectors_of(const Request& request);

// The wavefronts that a request to shared memory takes, and those it would take without conflicts.
struct Wavefronts {
  unsigned taken, ideal;
};
Wavefronts wavefronts_of(const Request& request);

// Lanes may reach into the shared memory of other blocks of the cluster, each of which has banks of its own.
Wavefronts wavefronts_in_each_block(const Request& request);

struct WorstRequest {
  unsigned cost = 0;  // sectors or wavefronts
  unsigned excess = 0;
  uint3 block{};
  uint32_t warp = 0, mask = 0;
  uintptr_t begin = 0;  // of the variable or allocation that the addresses are in
  std::string base;
  std::array<uintptr_t, 32> address{};
};

struct Site {
  Request like;                                                       // pc, space, kind, size and flags
  uint64_t requests = 0, lanes = 0, bytes = 0, units = 0, ideal = 0;  // units: sectors or wavefronts
  uint64_t read_from_peers = 0, written_to_peers = 0;                 // bytes, with several devices
  WorstRequest worst;
};

struct OperationCount {
  uint64_t calls = 0, lanes = 0;
};
struct BlockCount {
  uint64_t times = 0, lanes = 0;
};

// Which bytes were touched.
class ByteSet {
 public:
  void add(uintptr_t address, size_t size);
  uint64_t count() const;
  void clear() { pages_.clear(), last_ = nullptr; }

 private:
  static constexpr size_t kPage = 4096;
  using Page = std::array<uint64_t, kPage / 64>;
  std::unordered_map<uintptr_t, Page> pages_;
  uintptr_t last_page_ = 0;
  Page* last_ = nullptr;
};

struct Kernel {
  LaunchInfo launch;
  uint64_t launches = 0, blocks = 0;
  size_t static_shared = 0;
  uint64_t load_bytes = 0, store_bytes = 0, distinct_load_bytes = 0, distinct_store_bytes = 0,
           distinct_atomic_bytes = 0;
  uint64_t busiest_thread_bytes = 0;  // of global memory, moved by the thread that moves most; bulk copies left out
  using SiteKey = std::tuple<Pc, Space, Kind, uint32_t, bool>;
  std::map<SiteKey, Site> sites;
  std::map<std::pair<Pc, Operation>, OperationCount> operations;
  std::map<Pc, BlockCount> blocks_run;
};

class Counters : public Observer {
 public:
  void launch_begins(const LaunchInfo& launch) override;
  void launch_ends() override;
  void block_ends(const BlockInfo& block) override;
  void request(const Request& request) override;
  void called(const OperationCall& call) override;
  void ran(WarpRef where, Pc pc, uint32_t mask) override;

  const std::vector<Kernel*>& kernels() const { return kernels_; }

 private:
  struct Running {             // a launch
    Kernel* kernel = nullptr;  // null where it is not counted
    int device = 0;
    ByteSet loaded, stored, updated;
    std::unordered_map<uint64_t, std::vector<uint64_t>> moved;  // block -> bytes of each of its threads, while it runs
    uint64_t most_moved = 0;                                    // by a thread
  };
  Running& now();
  void count_link(const Running& running, const Request& request, Site& site);

  std::vector<Kernel*> kernels_;
  std::map<uint64_t, Running> running_;  // by running_launch
  uint64_t latest_id_ = 0;
  Running* latest_ = nullptr;
};
Counters& counters();

}  // namespace simt::analysis
