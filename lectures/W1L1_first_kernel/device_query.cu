// What this course wants to know of a device.
#include <cuda_runtime.h>

#include <cstdio>

int attribute(cudaDeviceAttr which) {
  int value = 0;
  cudaDeviceGetAttribute(&value, which, 0);
  return value;
}

int main() {
  cudaDeviceProp p;
  cudaError_t error = cudaGetDeviceProperties(&p, 0);
  if (error != cudaSuccess) return std::printf("no device: %s\n", cudaGetErrorString(error)), 1;

  std::printf("name                          %s\n", p.name);
  std::printf("compute capability            %d.%d\n", p.major, p.minor);
  std::printf("SMs                           %d\n", p.multiProcessorCount);
  std::printf("threads of a warp             %d\n", p.warpSize);
  std::printf("threads of a block            %d at most\n", p.maxThreadsPerBlock);
  std::printf("threads on an SM              %d at most\n", p.maxThreadsPerMultiProcessor);
  std::printf("blocks on an SM               %d at most\n", p.maxBlocksPerMultiProcessor);
  std::printf("registers of an SM            %d\n", p.regsPerMultiprocessor);
  std::printf("shared memory of an SM        %zu KiB\n", p.sharedMemPerMultiprocessor / 1024);
  std::printf("shared memory of a block      %zu KiB, %zu if asked for\n", p.sharedMemPerBlock / 1024,
              p.sharedMemPerBlockOptin / 1024);
  std::printf("L2 cache                      %.1f MiB\n", p.l2CacheSize / 1048576.0);
  std::printf("global memory                 %.1f GB\n", p.totalGlobalMem / 1e9);

  // Two transfers in each cycle of the memory's clock, as wide as the bus.
  const double memory_hz = 1e3 * attribute(cudaDevAttrMemoryClockRate);
  const double bus_bytes = attribute(cudaDevAttrGlobalMemoryBusWidth) / 8;
  const double clock_mhz = attribute(cudaDevAttrClockRate) / 1e3;
  if (memory_hz > 0) {
    std::printf("bandwidth of global memory    %.0f GB/s by its clock and its width\n",
                2 * memory_hz * bus_bytes / 1e9);
    std::printf("clock of the SMs              %.0f MHz at most\n", clock_mhz);
  } else {
    std::printf("bandwidth, clocks             none: this device has no time\n");
  }
}
