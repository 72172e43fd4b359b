// A launch that runs.
#pragma once
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_runtime_api.h"
#include "simt/launch.h"
#include "simt/stats.h"

namespace simt {

// One kernel launch, shared by the workers that run it.
struct Launch {
  const char* kernel = nullptr;    // its name; null where it was launched by its address
  const void* function = nullptr;  // its address, where known
  dim3 grid, block, cluster;
  size_t dynamic_shared = 0;
  bool cooperative = false;
  uint64_t overlaps = 0;  // the launch that it may overlap, which is the one before it; 0 if that one has ended
  cudaStream_t stream = nullptr;
  const BoundKernel* body = nullptr;

  uint64_t id = 0;
  unsigned threads = 0, warps_per_block = 0, cluster_size = 1;
  uint64_t blocks = 0, blocks_per_gang = 1, gangs = 0;
  int device = 0;
  uint64_t first_block = 0;            // for an analysis
  bool takes_turns = false;            // with other kernels: there are several devices
  bool exited_threads_arrive = false;  // SIMT_EXITED=arrive
  bool barriers_may_differ = false;    // SIMT_BARRIERS=any
  bool copies_land_early = false;      // SIMT_COPIES, or else whether the order is reversed

  // The order in which threads of a block run.
  uint8_t lane_at[32] = {};      // scheduling position -> lane
  uint8_t position_of[32] = {};  // lane -> scheduling position
  bool forward = true;           // both are the identity
  std::vector<uint32_t> warp_at;

  std::atomic<uint64_t> next_gang{0};
  std::atomic<bool> failed{false};
  std::atomic<size_t> shared_used{0};  // dynamic and static bytes of a block, known once a block has run

  std::mutex mutex;                                // guards what follows
  std::map<const void*, size_t> shared_variables;  // their offsets, where launches take turns
  cudaError_t error = cudaSuccess;
  std::string message;
  bool others_may_run = false;  // after its fault
  LaunchStats stats;
};

}  // namespace simt
