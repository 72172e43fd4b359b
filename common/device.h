// The device: what it is and can do, and what the CPU device has counted. GB is 10^9 bytes everywhere.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

namespace ladder {

struct Device {
  bool cpu = false;  // the CPU device: times and bandwidths mean nothing there
  std::string name;
  int compute_capability = 0;   // 90 for sm_90
  int driver = 0, runtime = 0;  // CUDA versions as CUDA numbers them: 13000 for 13.0
  int multiprocessors = 0;
  int sm_clock_khz = 0, memory_clock_khz = 0;  // highest clocks; 0: unknown
  double l2_bytes = 0;
  double peak_bytes_per_second = 0;  // datasheet bandwidth; 0: unknown

  std::string line() const;  // "NVIDIA H200, sm_90, driver/runtime CUDA 13.0/13.0, 132 SMs, 4800 GB/s datasheet"
};

Device current_device();
bool built_for_cpu_device();  // can be asked before there is a device

// What the CPU device counted while kernels ran, of several kernels the most. All 0 on a GPU.
struct Counters {
  double blocks = 0;
  double barriers_per_block = 0, warp_operations_per_block = 0;
};
Counters take_counters();  // since the last call

// The launch that the CPU device has refused, as a phrase that begins with ": ". "" on a GPU.
std::string refused_launch();

}  // namespace ladder
