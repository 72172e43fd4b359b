// Tensors for calls that the harness has no operator for.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <random>
#include <vector>

#include "common/memory.h"
#include "common/types.h"

namespace header_test {

constexpr double kU = 0x1p-24;

template <class T>
struct Format;
template <>
struct Format<float> : ladder::Float32 {
  static constexpr double kRoundoff = 0x1p-24, kSmallest = 0x1p-126;
  static constexpr const char* kName = "float32";
};
template <>
struct Format<__half> : ladder::Float16 {
  static constexpr double kRoundoff = 0x1p-11, kSmallest = 0x1p-24;
  static constexpr const char* kName = "float16";
};
template <>
struct Format<__nv_bfloat16> : ladder::Bfloat16 {
  static constexpr double kRoundoff = 0x1p-8, kSmallest = 0x1p-126;
  static constexpr const char* kName = "bfloat16";
};

// Elements in device memory that begin some elements after an allocation's start, and the same on the host.
template <class T>
struct Elements {
  using Stored = typename Format<T>::Stored;
  static constexpr int64_t kGuard = 64;
  std::vector<Stored> host;
  ladder::DeviceMemory<Stored> memory;
  int64_t begin;

  Elements(int64_t count, int64_t begin, std::mt19937& random)
      : host(count + begin + kGuard), memory(ladder::allocate<Stored>(count + begin + kGuard)), begin(begin) {
    std::normal_distribution<float> draw;
    for (Stored& element : host) element = Format<T>::from(draw(random));
    copy_in();
  }
  void copy_in() { CUDA_CHECK(cudaMemcpy(memory.get(), host.data(), host.size() * sizeof(Stored), cudaMemcpyDefault)); }
  std::vector<Stored> copy_out() const {
    std::vector<Stored> result(host.size());
    CUDA_CHECK(cudaMemcpy(result.data(), memory.get(), host.size() * sizeof(Stored), cudaMemcpyDefault));
    return result;
  }
  T* data() const { return reinterpret_cast<T*>(memory.get()) + begin; }
  double at(int64_t i) const { return Format<T>::value(host[begin + i]); }
};

}  // namespace header_test
