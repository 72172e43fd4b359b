// Kernels that nothing in the program has launched yet.
#pragma once
#include <cuda_runtime.h>

#include <vector>

namespace memory_bandwidth {

constexpr int kNewcomerFloats = 2048;

// All copy kNewcomerFloats floats with the same code, but each is a kernel of its own: the first launch of each has to
// bring its code onto the device.
std::vector<void (*)(const float* from, float* to, cudaStream_t stream)> newcomers();

}  // namespace memory_bandwidth
