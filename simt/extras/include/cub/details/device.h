// How CUB's device-wide algorithms run here: each as a kernel of one thread, with Thrust's serial algorithms.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>

#include "cub/thread/thread_operators.cuh"
#include "cub/util_type.cuh"
#include "thrust/detail/algorithms.h"

namespace cub {

// Two buffers, one of which holds the data; a sort leaves its result in the other one.
template <class T>
struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* alternate) : d_buffers{current, alternate} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};

namespace detail {

using thrust::detail::Raw;
using thrust::detail::Serial;
template <class It>
using value_of = thrust::detail::value_of<thrust::detail::raw_t<It>>;
template <class It>
auto raw(const It& it) {
  return thrust::detail::raw_t<It>(Raw<It>::to(it));
}

// The first call of each algorithm asks how much temporary memory it needs, and the second one does the work, here
// without this memory.
constexpr std::size_t kTemporaryBytes = 256;
template <class Body>
cudaError_t run(void* temporary, std::size_t& bytes, const char* name, cudaStream_t stream, Body body) {
  if (!temporary) {
    bytes = kTemporaryBytes;
    return cudaSuccess;
  }
  if (bytes < kTemporaryBytes) return cudaErrorInvalidValue;
  return simt::run_as_kernel(name, stream, std::move(body));
}

}  // namespace detail
}  // namespace cub
