// A vector's elements in device memory.
#pragma once
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"

namespace q4_header_test {

template <class T>
ladder::DeviceMemory<T> on_device(const std::vector<T>& from) {
  auto to = ladder::allocate<T>(from.size());
  CUDA_CHECK(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return to;
}

}  // namespace q4_header_test
