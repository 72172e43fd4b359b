// Validates launches as CUDA does, runs them, and says how they ended.
#include "simt/launch.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "environment.h"
#include "fault.h"
#include "in_flight.h"
#include "kernels.h"
#include "memory.h"
#include "progress.h"
#include "queues.h"
#include "scheduler.h"
#include "state.h"
#include "worker_pool.h"

namespace simt {

namespace {

constexpr unsigned kPortableCluster = 8, kLargestCluster = 16;

LaunchStats last_stats;
BlockStats most_stats;  // since they were taken
uint64_t launches = 0;
std::string refused;

uint64_t volume(dim3 d) { return static_cast<uint64_t>(d.x) * d.y * d.z; }

std::string size_text(dim3 d, const char* unit) {
  std::string result = std::to_string(d.x);
  if (d.y != 1 || d.z != 1) result += " x " + std::to_string(d.y);
  if (d.z != 1) result += " x " + std::to_string(d.z);
  return result + " " + unit + (volume(d) == 1 ? "" : "s");
}

// The codes are those of CUDA 13.0 on an H200; releases before it answered cudaErrorInvalidConfiguration for the first
// two.
cudaError_t validate(const LaunchConfig& c) {
  const auto refuse = [](cudaError_t error, const std::string& why) {
    explain(why);
    return error;
  };
  if (!volume(c.grid) || c.grid.x > 0x7fffffffu || c.grid.y > 65535 || c.grid.z > 65535)
    return refuse(cudaErrorInvalidValue,
                  "its grid has " + size_text(c.grid, "block") +
                      (volume(c.grid) ? ", and the most is 2147483647 x 65535 x 65535" : ", and it needs at least 1"));
  if (!volume(c.block) || c.block.x > 1024 || c.block.y > 1024 || c.block.z > 64 || volume(c.block) > kMaxThreads)
    return refuse(cudaErrorInvalidValue,
                  "its blocks have " + size_text(c.block, "thread") +
                      (volume(c.block) ? ", and the most is 1024 in all and 64 in z" : ", and each needs at least 1"));
  const KernelState state = state_of(c.function);
  const size_t limit = c.function ? static_cast<size_t>(state.max_dynamic_shared) : kSharedLimit;
  if (c.shared > limit)
    return refuse(cudaErrorInvalidValue,
                  "it asks for " + std::to_string(c.shared) + " bytes of dynamic shared memory, and the most is " +
                      std::to_string(limit) +
                      (limit < kSharedLimit ? " unless cudaFuncSetAttribute sets the kernel's "
                                              "cudaFuncAttributeMaxDynamicSharedMemorySize, up to " +
                                                  std::to_string(kSharedLimit)
                                            : ""));
  const uint64_t cluster = volume(c.cluster_size);
  const unsigned largest = state.non_portable_cluster ? kLargestCluster : kPortableCluster;
  if (!cluster || cluster > largest || c.grid.x % c.cluster_size.x || c.grid.y % c.cluster_size.y ||
      c.grid.z % c.cluster_size.z)
    return refuse(cudaErrorInvalidClusterSize, "its cluster has " + size_text(c.cluster_size, "block") +
                                                   ", the most is " + std::to_string(largest) + ", and the grid of " +
                                                   size_text(c.grid, "block") + " must be a multiple of it");
  const int resident = blocks_per_multiprocessor(static_cast<int>(volume(c.block)), c.shared);
  if (c.cooperative && volume(c.grid) > static_cast<uint64_t>(resident) * multiprocessors())
    return refuse(cudaErrorCooperativeLaunchTooLarge,
                  "its grid has " + size_text(c.grid, "block") + ", and only " +
                      std::to_string(static_cast<uint64_t>(resident) * multiprocessors()) +
                      " are on the device at once, which a cooperative launch needs");
  return cudaSuccess;
}

std::string describe(const LaunchConfig& c) {
  return "the grid has " + size_text(c.grid, "block") + ", the block " + size_text(c.block, "thread") + " and " +
         std::to_string(c.shared) +
         " bytes of dynamic shared memory; a grid has at least 1 block, and a block 1 to 1024 threads";
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
  if (message.empty()) return error;  // it ended because another kernel failed
  std::fflush(stdout);
  std::fprintf(stderr, "simt: %s: %s\n", cudaGetErrorName(error), message.c_str());
  if (!kAnalysis && error == cudaErrorLaunchTimeout)
    std::fprintf(stderr,
                 "simt: simt/analyze in place of simt/simtcc shows which accesses the threads make there, and whether "
                 "something orders them; SIMT_TIMEOUT is the number of seconds\n");
  set_sticky(error);
  stop_others();
  return error;
}

// How many blocks a worker holds at a time. With several devices a kernel may wait for a peer, as on GPUs with all its
// blocks that fit.
uint64_t blocks_in_gang(const Launch& launch, uint64_t blocks) {
  if (launch.cooperative) return blocks;
  if (!launch.takes_turns) return launch.cluster_size;
  const auto resident =
      static_cast<uint64_t>(blocks_per_multiprocessor(static_cast<int>(launch.threads), launch.dynamic_shared)) *
      multiprocessors();
  return std::min(blocks, std::max<uint64_t>(resident / launch.cluster_size, 1) * launch.cluster_size);
}

cudaError_t execute(const LaunchConfig& config, const BoundKernel& kernel) {
  std::unique_lock<std::recursive_mutex> lock(api_mutex(), std::defer_lock);
  if (several_devices()) lock.lock();
  Launch launch;
  launch.device = current_device();
  launch.takes_turns = several_devices();
  launch.kernel = config.kernel;
  launch.function = config.function;
  launch.grid = config.grid;
  launch.block = config.block;
  launch.cluster = config.cluster_size;
  launch.dynamic_shared = config.shared;
  launch.cooperative = config.cooperative;
  launch.overlaps = config.dependent ? launch_before() : 0;
  launch.stream = config.stream;
  launch.body = &kernel;
  for (const BoundKernel::Pointer& argument : kernel) {
    if (!is_host_memory(argument.value)) continue;
    const std::string sentence = "kernel " + kernel_name(launch) + ": argument " + std::to_string(argument.position) +
                                 " points to host memory; allocate it with cudaMalloc and copy it with cudaMemcpy";
    add_said(sentence);
    return fault(cudaErrorIllegalAddress, sentence);
  }
  note_launch(launch.id = ++launches);
  if (!kAnalysis && launch.id == 1) on_exit(hint_at_exit, nullptr);
  launch.threads = static_cast<unsigned>(volume(config.block));
  launch.warps_per_block = (launch.threads + 31) / 32;
  launch.cluster_size = static_cast<unsigned>(volume(config.cluster_size));
  const uint64_t blocks = volume(config.grid);
  launch.blocks = blocks;
  launch.blocks_per_gang = blocks_in_gang(launch, blocks);
  launch.gangs = (blocks + launch.blocks_per_gang - 1) / launch.blocks_per_gang;
  launch.shared_used = (config.shared + 127) / 128 * 128;
  const std::string wrong = apply_settings(launch);
  if (!wrong.empty()) return fault(cudaErrorInitializationError, wrong);
  launch.stats.blocks = blocks;
  launch.stats.threads = blocks * launch.threads;
  if (launch.takes_turns) {
    name_operation("kernel " + kernel_name(launch));
    lock.unlock();
  }
  {
    const FaultHandlers handlers;
#ifdef SIMT_ANALYSIS
    const analysis::Launching launching;
    const analysis::LaunchInfo info = analysis::describe(launch);
    SIMT_TELL(launch_begins(info));
#endif
    const Progress progress(launch);
    run_on_workers(launch);
    SIMT_TELL(launch_ends());
  }
  if (launch.takes_turns) lock.lock();
  if (kAnalysis) starts(launch, config);
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
  cudaError_t error = validate(config);
  if (several_devices() && error == cudaSuccess) {
    const int device = device_of(config.stream);
    if (device >= 0 && device != current_device()) {
      explain("its stream belongs to device " + std::to_string(device) + ", and the current device is " +
              std::to_string(current_device()) + ": call cudaSetDevice(" + std::to_string(device) + ") first");
      error = cudaErrorInvalidResourceHandle;
    }
  }
  if (error != cudaSuccess) {
    refused = describe(config);
    return record(error);
  }
  return enqueue(config.stream, [config, kernel] { return execute(config, *kernel); });
}

cudaError_t launch_untyped(LaunchConfig config, const void* function, void** arguments) {
  const Binder bind = state_of(function).binder;
  if (!bind) {
    if (is_kernel(function))
      not_supported(
          "the CPU device cannot tell a kernel's parameters from its address alone: write the kernel's name where it "
          "is cast to a void pointer, as in (void*)kernel");
    return record(cudaErrorInvalidDeviceFunction);
  }
  config.function = function;
  return launch_kernel(config, bind(function, arguments));
}

cudaError_t refuse(cudaError_t error) { return record(error); }

LaunchConfig from_cuda(const cudaLaunchConfig_t& c) {
  LaunchConfig config(nullptr, c.gridDim, c.blockDim, c.dynamicSmemBytes, c.stream);
  for (unsigned i = 0; i < c.numAttrs; ++i) {
    const auto& attribute = c.attrs[i];
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      config.cluster(attribute.val.clusterDim.x, attribute.val.clusterDim.y, attribute.val.clusterDim.z);
    if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      config.dependent = attribute.val.programmaticStreamSerializationAllowed != 0;
    if (attribute.id == cudaLaunchAttributeCooperative) config.cooperative = attribute.val.cooperative != 0;
  }
  return config;
}

LaunchStats last_launch_stats() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return last_stats;
}

std::string refused_launch() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return refused;
}

BlockStats take_block_stats() {
  std::lock_guard<std::recursive_mutex> lock(api_mutex());
  return std::exchange(most_stats, {});
}

}  // namespace simt
