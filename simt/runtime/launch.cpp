// Validates launches as CUDA does and hands the blocks out to worker threads in order.
#include "simt/launch.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>

#include "fault.h"
#include "memory.h"
#include "scheduler.h"
#include "state.h"

namespace simt {

namespace {

constexpr uint64_t kInlineThreads = 1024;  // launches of fewer threads run on the calling thread alone
constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;

struct FunctionState {
  Binder binder = nullptr;
  int max_dynamic_shared = static_cast<int>(kStaticSharedLimit);
  bool non_portable_cluster = false;
};

std::unordered_map<const void*, FunctionState>& functions() {  // guarded by api_mutex()
  static auto* map = new std::unordered_map<const void*, FunctionState>;
  return *map;
}

LaunchStats last_stats;
BlockStats most_stats;  // since they were taken
uint64_t launches = 0;

unsigned worker_count() {
  if (kAnalysis) return 1;  // the observers see one event at a time
  if (const char* text = std::getenv("SIMT_WORKERS")) {
    const int asked = std::atoi(text);
    if (asked >= 1 && asked <= 1024) return static_cast<unsigned>(asked);
    std::fprintf(stderr, "simt: SIMT_WORKERS is '%s'; it must be a number from 1 to 1024\n", text);
    std::exit(2);
  }
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) return std::max(1u, static_cast<unsigned>(CPU_COUNT(&cpus)));
  return std::max(1u, std::thread::hardware_concurrency());
}

// Worker 0 is the launching thread; the others wait for work. Launches come one at a time, under api_mutex().
class Pool {
 public:
  Pool() {
    const unsigned count = worker_count();
    for (unsigned i = 0; i < count; ++i) workers_.push_back(new Worker);
    for (unsigned i = 1; i < count; ++i) std::thread([this, i] { serve(*workers_[i]); }).detach();
  }

  void run(Launch& launch) {
    const bool alone = workers_.size() == 1 || launch.gangs == 1 ||
                       launch.gangs * launch.blocks_per_gang * launch.threads < kInlineThreads;
    if (!alone) {
      std::lock_guard<std::mutex> lock(mutex_);
      launch_ = &launch;
      busy_ = workers_.size() - 1;
      ++generation_;
      work_.notify_all();
    }
    workers_[0]->run(launch);
    if (alone) return;
    std::unique_lock<std::mutex> lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
  }

  const std::vector<Worker*>& workers() const { return workers_; }

 private:
  [[noreturn]] void serve(Worker& own) {
    uint64_t served = 0;
    for (;;) {
      std::unique_lock<std::mutex> lock(mutex_);
      work_.wait(lock, [&] { return generation_ != served; });
      served = generation_;
      Launch& launch = *launch_;
      lock.unlock();
      own.run(launch);
      lock.lock();
      if (--busy_ == 0) done_.notify_one();
    }
  }

  std::vector<Worker*> workers_;
  std::mutex mutex_;
  std::condition_variable work_, done_;
  Launch* launch_ = nullptr;
  uint64_t generation_ = 0;
  size_t busy_ = 0;
};

// Never destroyed: its threads outlive main. A process that was forked has none of them, and gets a pool of its own.
Pool& pool() {
  static std::atomic<Pool*> known{nullptr};
  static const int forgotten_after_fork = pthread_atfork(nullptr, nullptr, [] { known = nullptr; });
  static_cast<void>(forgotten_after_fork);
  static std::mutex mutex;
  if (known == nullptr) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (known == nullptr) known = new Pool;
  }
  return *known;
}

// What the watchdog's thread shows of a launch that takes long, on a terminal: several samples look like a hang.
class Progress {
 public:
  void begins(const Launch& launch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    launch_ = &launch;
    begin_ = std::chrono::steady_clock::now();
  }
  void ends() {
    const std::lock_guard<std::mutex> lock(mutex_);
    launch_ = nullptr;
    if (shown_) std::fputs(kClear, stderr);
    shown_ = false;
  }
  void show() {
    constexpr std::chrono::seconds kPatience(5);
    static const bool is_wanted = [] {
      const char* asked = std::getenv("SIMT_PROGRESS");
      return asked ? std::strcmp(asked, "0") != 0 : isatty(2) != 0;
    }();
    if (!is_wanted) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!launch_ || std::chrono::steady_clock::now() - begin_ < kPatience) return;
    const uint64_t gangs = std::min<uint64_t>(launch_->next_gang, launch_->gangs);
    std::fprintf(stderr, "%ssimt: kernel %s: %llu of %llu blocks started", kClear,
                 launch_->kernel ? launch_->kernel : "",
                 static_cast<unsigned long long>(gangs * launch_->blocks_per_gang),
                 static_cast<unsigned long long>(launch_->gangs * launch_->blocks_per_gang));
    shown_ = true;
  }

 private:
  static constexpr const char* kClear = "\r\033[K";
  std::mutex mutex_;
  const Launch* launch_ = nullptr;
  std::chrono::steady_clock::time_point begin_;
  bool shown_ = false;
};

Progress& progress() {
  static auto* progress = new Progress;
  return *progress;
}

// SIMT_ORDER: forward (default), reversed, or the seed of a shuffle.
void set_order(Launch& launch) {
  const char* text = std::getenv("SIMT_ORDER");
  const std::string order = text ? text : "forward";
  std::vector<uint32_t> lanes(32), warps(launch.warps_per_block);
  std::iota(lanes.begin(), lanes.end(), 0);
  std::iota(warps.begin(), warps.end(), 0);
  if (order == "reversed") {
    std::reverse(lanes.begin(), lanes.end());
    std::reverse(warps.begin(), warps.end());
    launch.copies_land_early = true;
  } else if (!order.empty() && order.find_first_not_of("0123456789") == std::string::npos) {
    std::mt19937_64 random(std::strtoull(text, nullptr, 10));
    const auto shuffle = [&](std::vector<uint32_t>& v) {
      for (size_t i = v.size(); i > 1; --i) std::swap(v[i - 1], v[random() % i]);
    };
    shuffle(lanes);
    shuffle(warps);
  } else if (order != "forward") {
    std::fprintf(stderr, "simt: SIMT_ORDER is '%s'; it must be forward, reversed or a seed (a number)\n", text);
    std::exit(2);
  }
  launch.forward = std::is_sorted(lanes.begin(), lanes.end());
  for (uint32_t position = 0; position < 32; ++position) {
    launch.lane_at[position] = static_cast<uint8_t>(lanes[position]);
    launch.position_of[lanes[position]] = static_cast<uint8_t>(position);
  }
  launch.warp_at = warps;
}

// SIMT_COPIES: whether asynchronous copies land early or late. By default the order decides.
void set_copies(Launch& launch) {
  const char* text = std::getenv("SIMT_COPIES");
  if (!text) return;
  const std::string when = text;
  if (when != "early" && when != "late") {
    std::fprintf(stderr, "simt: SIMT_COPIES is '%s'; it must be early or late\n", text);
    std::exit(2);
  }
  launch.copies_land_early = when == "early";
}

bool is_set(const char* variable, const char* value) {
  const char* text = std::getenv(variable);
  return text && std::strcmp(text, value) == 0;
}

uint64_t volume(dim3 d) { return static_cast<uint64_t>(d.x) * d.y * d.z; }

// The codes are those of CUDA 13.0 on an H200; releases before it answered cudaErrorInvalidConfiguration for the first
// two.
cudaError_t validate(const LaunchConfig& c) {
  if (!volume(c.grid) || c.grid.x > 0x7fffffffu || c.grid.y > 65535 || c.grid.z > 65535) return cudaErrorInvalidValue;
  if (!volume(c.block) || c.block.x > 1024 || c.block.y > 1024 || c.block.z > 64 || volume(c.block) > kMaxThreads)
    return cudaErrorInvalidValue;
  const auto known = functions().find(c.function);
  const FunctionState state = known == functions().end() ? FunctionState{} : known->second;
  const size_t limit = c.function ? static_cast<size_t>(state.max_dynamic_shared) : kSharedLimit;
  if (c.shared > limit) return cudaErrorInvalidValue;
  const uint64_t cluster = volume(c.cluster_size);
  const unsigned largest = state.non_portable_cluster ? kLargestCluster : kPortableCluster;
  if (!cluster || cluster > largest || c.grid.x % c.cluster_size.x || c.grid.y % c.cluster_size.y ||
      c.grid.z % c.cluster_size.z)
    return cudaErrorInvalidClusterSize;
  const int resident = blocks_per_multiprocessor(static_cast<int>(volume(c.block)), c.shared);
  if (c.cooperative && volume(c.grid) > static_cast<uint64_t>(resident) * kMultiprocessors)
    return cudaErrorCooperativeLaunchTooLarge;
  return cudaSuccess;
}

// A plain run cannot know why an answer is wrong. Shown to people, and to who asks for it.
void hint_at_exit(int status, void*) {
  const char* asked = std::getenv("SIMT_HINTS");
  if (!status || sticky() != cudaSuccess || (asked ? !std::strcmp(asked, "0") : !isatty(2))) return;
  std::fprintf(
      stderr,
      "simt: the program ended with exit code %d, and no kernel failed. simt/analyze in place of simt/simtcc looks "
      "for races, also of lanes that volatile is to keep in step, and for shared memory that is read before it "
      "is written; SIMT_ORDER=reversed runs the threads in another order\n",
      status);
}

cudaError_t fault(cudaError_t error, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "simt: %s: %s\n", cudaGetErrorName(error), message.c_str());
  if (!kAnalysis && error == cudaErrorLaunchTimeout)
    std::fprintf(stderr,
                 "simt: simt/analyze in place of simt/simtcc shows which accesses the threads make there, and whether "
                 "something orders them; SIMT_TIMEOUT is the number of seconds\n");
  set_sticky(error);
  return error;
}

#ifdef SIMT_ANALYSIS
analysis::LaunchInfo describe(const Launch& launch) {
  std::string name = launch.function ? analysis::function_name(reinterpret_cast<uintptr_t>(launch.function)) : "";
  if (name.empty()) name = kernel_name(launch);
  return {launch.id, name, launch.grid, launch.block, launch.cluster, launch.dynamic_shared, launch.cooperative};
}
#endif

cudaError_t execute(const LaunchConfig& config, const BoundKernel& kernel) {
  Launch launch;
  launch.kernel = config.kernel;
  launch.function = config.function;
  launch.grid = config.grid;
  launch.block = config.block;
  launch.cluster = config.cluster_size;
  launch.dynamic_shared = config.shared;
  launch.cooperative = config.cooperative;
  launch.body = &kernel;
  for (const auto& [position, pointer] : kernel)
    if (is_host_memory(pointer))
      return fault(cudaErrorIllegalAddress, "kernel " + kernel_name(launch) + ": argument " + std::to_string(position) +
                                                " points to host memory; allocate it with cudaMalloc and copy it "
                                                "with cudaMemcpy");
  launch.id = ++launches;
  if (!kAnalysis && launch.id == 1) on_exit(hint_at_exit, nullptr);
  launch.threads = static_cast<unsigned>(volume(config.block));
  launch.warps_per_block = (launch.threads + 31) / 32;
  launch.cluster_size = static_cast<unsigned>(volume(config.cluster_size));
  const uint64_t blocks = volume(config.grid);
  launch.blocks_per_gang = config.cooperative ? blocks : launch.cluster_size;
  launch.gangs = blocks / launch.blocks_per_gang;
  launch.shared_used = (config.shared + 127) / 128 * 128;
  launch.exited_threads_arrive = is_set("SIMT_EXITED", "arrive");
  launch.barriers_may_differ = is_set("SIMT_BARRIERS", "any");
  set_order(launch);
  set_copies(launch);
  launch.stats.blocks = blocks;
  launch.stats.threads = blocks * launch.threads;
  {
    const FaultHandlers handlers;
    SIMT_TELL(launch_begins(describe(launch)));
    progress().begins(launch);
    pool().run(launch);
    progress().ends();
    SIMT_TELL(launch_ends());
  }
  last_stats = launch.stats;
  const auto per_block = [&](uint64_t count) { return static_cast<double>(count) / static_cast<double>(blocks); };
  most_stats = {std::max(most_stats.blocks, blocks), std::max(most_stats.barriers, per_block(launch.stats.barriers)),
                std::max(most_stats.warp_ops, per_block(launch.stats.warp_ops))};
  if (launch.failed) {
    runs_on_after_fault = launch.others_may_run && (sticky() == cudaSuccess || runs_on_after_fault);
    return fault(launch.error, launch.message);
  }
  const std::string overwritten = check_guards();
  if (!overwritten.empty()) return fault(cudaErrorIllegalAddress, "kernel " + kernel_name(launch) + ": " + overwritten);
  return cudaSuccess;
}

}  // namespace

cudaError_t launch_kernel(const LaunchConfig& config, const BoundKernel* taken_over) {
  const std::shared_ptr<const BoundKernel> kernel(taken_over);
  if (worker)
    worker->fail(cudaErrorNotSupported, "the CPU device does not launch kernels from kernels (dynamic parallelism)");
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (is_stopped()) return sticky();
  const cudaError_t error = validate(config);
  if (error != cudaSuccess) return record(error);
  return enqueue(config.stream, [config, kernel] { return execute(config, *kernel); });
}

void register_kernel(const void* function, Binder binder) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  functions()[function].binder = binder;
}

cudaError_t launch_untyped(LaunchConfig config, const void* function, void** arguments) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  const auto known = functions().find(function);
  if (known == functions().end() || !known->second.binder) return record(cudaErrorInvalidDeviceFunction);
  config.function = function;
  return launch_kernel(config, known->second.binder(function, arguments));
}

cudaError_t refuse(cudaError_t error) { return record(error); }

LaunchConfig from_cuda(const cudaLaunchConfig_t& c) {
  LaunchConfig config(nullptr, c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream);
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    const auto& attribute = c.attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      config.cluster(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
    if (attribute.id == cudaLaunchAttributeCooperative) config.cooperative = attribute.val.cooperative != 0;
  }
  return config;
}

int blocks_per_multiprocessor(int block_size, size_t shared) {
  const unsigned threads = (static_cast<unsigned>(block_size) + 31) / 32 * 32;
  if (block_size < 1 || threads > kMaxThreads || shared > kSharedLimit) return 0;
  const size_t by_shared = (kSharedLimit + 1024) / (shared + 1024);  // a block's own kilobyte included
  return static_cast<int>(std::min<size_t>({kBlocksPerMultiprocessor, kThreadsPerMultiprocessor / threads, by_shared}));
}

uint64_t oldest_running_block() {
  uint64_t oldest = ~static_cast<uint64_t>(0);
  for (const Worker* w : pool().workers()) oldest = std::min<uint64_t>(oldest, w->oldest);
  return oldest;
}

void show_progress() { progress().show(); }

std::vector<Worker*> all_workers() { return pool().workers(); }

LaunchStats last_launch_stats() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return last_stats;
}

BlockStats take_block_stats() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return std::exchange(most_stats, {});
}

}  // namespace simt

using namespace simt;

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  FunctionState& state = functions()[function];
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize:
      if (value < 0 || static_cast<size_t>(value) > kSharedLimit) return record(cudaErrorInvalidValue);
      state.max_dynamic_shared = std::max(value, static_cast<int>(kStaticSharedLimit));
      return cudaSuccess;
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      return value < -1 || value > 100 ? record(cudaErrorInvalidValue) : cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      state.non_portable_cluster = value != 0;
      return cudaSuccess;
    default:
      return record(cudaErrorInvalidValue);
  }
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  if (!attributes) return record(cudaErrorInvalidValue);
  const auto known = functions().find(function);
  *attributes = {};
  attributes->maxThreadsPerBlock = kMaxThreads;
  attributes->maxDynamicSharedSizeBytes =
      known == functions().end() ? static_cast<int>(kStaticSharedLimit) : known->second.max_dynamic_shared;
  attributes->binaryVersion = attributes->ptxVersion = 90;
  return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }
cudaError_t cudaFuncSetSharedMemConfig(const void*, cudaSharedMemConfig) { return cudaSuccess; }

cudaError_t simt::occupancy_block_size(int* grid, int* block, size_t (*shared_of)(void* context, int size),
                                       void* context, int limit) {
  if (!grid || !block || limit < 0) return record(cudaErrorInvalidValue);
  int best_threads = 0;
  for (int size = std::min(limit ? limit : static_cast<int>(kMaxThreads), static_cast<int>(kMaxThreads)); size >= 1;
       size -= size % 32 ? size % 32 : 32) {
    const int blocks = blocks_per_multiprocessor(size, shared_of(context, size));
    if (blocks * size <= best_threads) continue;
    best_threads = blocks * size;
    *block = size;
    *grid = blocks * static_cast<int>(kMultiprocessors);
  }
  return best_threads ? cudaSuccess : record(cudaErrorInvalidValue);
}
