// Owning, move-only float buffers: on the device between guards, and page-locked on the host.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "common/cuda_check.h"

namespace ladder {

// Both are signalling NaN patterns: whatever is computed from them is NaN, but never one of them again.
constexpr uint32_t kPoison = 0x7fadbeefu;  // an element that nothing has written
constexpr uint32_t kGuard = 0x7fa5c3e1u;   // an element outside the buffer, that nothing may write

inline uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// unique_ptr's deleter for what a CUDA function destroys.
template <auto destroy>
struct CudaDeleter {
  template <class T>
  void operator()(T* owned) const {
    destroy(owned);
  }
};

// count floats of device memory with at least `guard` more on each side; the first element is `offset` floats past a
// 256-byte boundary.
class DeviceBuffer {
 public:
  explicit DeviceBuffer(int64_t count, int64_t guard = 1024, int64_t offset = 0)
      : count_(count), front_((guard + 63) / 64 * 64 + offset), back_(guard) {
    float* base = nullptr;
    CUDA_CHECK(cudaMalloc(reinterpret_cast<void**>(&base), (front_ + count_ + back_) * sizeof(float)));
    base_.reset(base);
    fill_guards();
  }

  float* data() const { return base_.get() + front_; }
  int64_t size() const { return count_; }

  void poison() { fill(data(), count_, kPoison); }
  void upload(const float* host) { copy(data(), host, count_, cudaMemcpyHostToDevice); }
  void download(float* host, int64_t first, int64_t count) const {
    copy(host, data() + first, count, cudaMemcpyDeviceToHost);
  }

  // Guard elements that no longer hold the pattern, as positions relative to data(): negative is before it. What was
  // overwritten is restored.
  std::vector<int64_t> overrun() {
    std::vector<int64_t> positions;
    std::vector<uint32_t> guard(std::max(front_, back_));
    const auto look = [&](int64_t first, int64_t count) {
      copy(guard.data(), data() + first, count, cudaMemcpyDeviceToHost);
      for (int64_t i = 0; i < count; ++i)
        if (guard[i] != kGuard) positions.push_back(first + i);
    };
    look(-front_, front_);
    look(count_, back_);
    if (!positions.empty()) fill_guards();
    return positions;
  }

 private:
  static void copy(void* to, const void* from, int64_t count, cudaMemcpyKind kind) {
    if (count > 0) CUDA_CHECK(cudaMemcpy(to, from, count * sizeof(float), kind));
  }
  // The pattern is uploaded once, then doubled on the device.
  static void fill(float* to, int64_t count, uint32_t pattern) {
    const std::vector<uint32_t> seed(std::min<int64_t>(count, 1 << 16), pattern);
    int64_t done = static_cast<int64_t>(seed.size());
    copy(to, seed.data(), done, cudaMemcpyHostToDevice);
    for (; done < count; done *= 2) copy(to + done, to, std::min(done, count - done), cudaMemcpyDeviceToDevice);
  }
  void fill_guards() {
    fill(base_.get(), front_, kGuard);
    fill(data() + count_, back_, kGuard);
  }

  std::unique_ptr<float, CudaDeleter<cudaFree>> base_;
  int64_t count_, front_, back_;
};

// Page-locked host memory: copies to and from a GPU run at the bus's speed.
class HostBuffer {
 public:
  explicit HostBuffer(int64_t count) : size_(count) {
    float* data = nullptr;
    CUDA_CHECK(cudaMallocHost(reinterpret_cast<void**>(&data), std::max<int64_t>(count, 1) * sizeof(float)));
    data_.reset(data);
  }
  float* data() const { return data_.get(); }
  int64_t size() const { return size_; }

 private:
  std::unique_ptr<float, CudaDeleter<cudaFreeHost>> data_;
  int64_t size_;
};

}  // namespace ladder
