// Memory that is owned: on the device, and page-locked on the host. CUDA's handles in a unique_ptr.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/cuda_check.h"

namespace ladder {

// unique_ptr's deleter for an object that a CUDA function destroys.
template <auto destroy>
struct CudaDeleter {
  template <class T>
  void operator()(T* owned) const {
    destroy(owned);
  }
};

template <class T = char>
using DeviceMemory = std::unique_ptr<T, CudaDeleter<cudaFree>>;

template <class T = char>
DeviceMemory<T> allocate(int64_t count) {
  T* memory = nullptr;
  CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&memory), std::max<int64_t>(count, 1) * sizeof(T)));
  return DeviceMemory<T>(memory);
}

// Makes a device the current one until its end.
class OnDevice {
 public:
  explicit OnDevice(int device) {
    CUDA_CHECK(cudaGetDevice(&before_));
    CUDA_CHECK(cudaSetDevice(device));
  }
  ~OnDevice() { cudaSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  int before_ = 0;
};

// Waits for the current device, or for devices 0 to count - 1 if there are several; the first error.
inline cudaError_t synchronize(int count) {
  if (count == 1) return cudaDeviceSynchronize();
  cudaError_t first = cudaSuccess;
  for (int device = 0; device < count; ++device) {
    const OnDevice here(device);
    const cudaError_t error = cudaDeviceSynchronize();
    if (first == cudaSuccess) first = error;
  }
  return first;
}

// Page-locked if that pays: copies to and from a GPU then run at the bus's speed, but the locking itself takes time.
class HostMemory {
 public:
  explicit HostMemory(int64_t bytes = 0) {
    if (bytes >= kLeastLocked) {
      void* memory = nullptr;
      CUDA_CHECK(cudaMallocHost(&memory, bytes));
      locked_.reset(static_cast<char*>(memory));
    } else if (bytes > 0) {
      plain_.reset(new char[bytes]);
    }
  }
  char* data() const { return locked_ ? locked_.get() : plain_.get(); }

 private:
  static constexpr int64_t kLeastLocked = 1 << 20;
  std::unique_ptr<char, CudaDeleter<cudaFreeHost>> locked_;
  std::unique_ptr<char[]> plain_;
};

}  // namespace ladder
