// CUB's allocator, which on a GPU keeps freed memory for the next request. Here it keeps none, so the device sees an
// access to freed memory.
#pragma once
#include "cuda_runtime_api.h"

namespace cub {

struct CachingDeviceAllocator {
  explicit CachingDeviceAllocator(bool /*skip_cleanup*/ = false, bool /*debug*/ = false) {}
  CachingDeviceAllocator(unsigned /*bin_growth*/, unsigned /*min_bin*/ = 1, unsigned /*max_bin*/ = ~0u,
                         size_t /*max_cached_bytes*/ = ~size_t{0}, bool /*skip_cleanup*/ = false) {}
  cudaError_t DeviceAllocate(void** pointer, size_t bytes, cudaStream_t = nullptr) {
    return cudaMalloc(pointer, bytes);
  }
  cudaError_t DeviceFree(void* pointer) { return cudaFree(pointer); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};

}  // namespace cub
