// Memory that is owned: on the device, and page-locked on the host. CUDA's handles in a unique_ptr.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/cuda_check.h"

namespace ladder {

// unique_ptr's deleter for what a CUDA function destroys.
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

// Page-locked: copies to and from a GPU run at the bus's speed.
class HostMemory {
 public:
  explicit HostMemory(int64_t bytes = 0) {
    if (bytes == 0) return;
    void* memory = nullptr;
    CUDA_CHECK(cudaMallocHost(&memory, bytes));
    memory_.reset(static_cast<char*>(memory));
  }
  char* data() const { return memory_.get(); }

 private:
  std::unique_ptr<char, CudaDeleter<cudaFreeHost>> memory_;
};

}  // namespace ladder
