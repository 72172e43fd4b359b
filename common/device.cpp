#include "common/device.h"

#ifdef __SIMT__
#include <simt/stats.h>
#endif

#include "common/cuda_check.h"
#include "common/text.h"

namespace ladder {

Device current_device() {
  const auto attribute = [](cudaDeviceAttr name) {
    int value = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&value, name, 0));
    return value;
  };
  cudaDeviceProp properties;
  CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  Device device;
  device.name = properties.name;
  device.cpu = device.name.find("(simt)") != std::string::npos;
  device.compute_capability = properties.major * 10 + properties.minor;
  device.multiprocessors = properties.multiProcessorCount;
  CUDA_CHECK(cudaDriverGetVersion(&device.driver));
  CUDA_CHECK(cudaRuntimeGetVersion(&device.runtime));
  if (device.cpu) return device;
  device.sm_clock_khz = attribute(cudaDevAttrClockRate);
  device.memory_clock_khz = attribute(cudaDevAttrMemoryClockRate);
  device.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  // Two transfers per clock over the width of the bus.
  device.peak_bytes_per_second =
      2.0 * 1000.0 * device.memory_clock_khz * attribute(cudaDevAttrGlobalMemoryBusWidth) / 8.0;
  return device;
}

std::string Device::line() const {
  if (cpu) return name;
  std::string result = text("%s, sm_%d, CUDA driver %d.%d runtime %d.%d, %d SMs", name.c_str(), compute_capability,
                            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, multiprocessors);
  if (peak_bytes_per_second > 0) return result + text(", %.0f GB/s datasheet", peak_bytes_per_second / 1e9);
  return result + ", datasheet bandwidth not reported by the driver";
}

bool built_for_cpu_device() {
#ifdef __SIMT__
  return true;
#else
  return false;
#endif
}

Counters take_counters() {
#ifdef __SIMT__
  const simt::BlockStats stats = simt::take_block_stats();
  return {static_cast<double>(stats.blocks), stats.barriers, stats.warp_ops};
#else
  return {};
#endif
}

std::string refused_launch() {
#ifdef __SIMT__
  const std::string refused = simt::refused_launch();
  return refused.empty() ? "" : ": " + refused;
#else
  return "";
#endif
}

}  // namespace ladder
