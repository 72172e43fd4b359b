// What the kernels of this lecture share: where a walker starts, the law of the table, the clocks, and what a stage
// refuses.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"
#include "common/launch.h"
#include "common/operators/walk.h"

namespace ladder::latency {

__device__ inline uint32_t start_of_walker(uint32_t walker, uint32_t apart, uint32_t last) {
  return walker * apart & last;  // last: the number of the table's last word, so this is modulo its length
}

// A step can be computed, too: table[i] = factor · i + shift, modulo the table's length. Reads both from the table.
struct Law {
  uint32_t factor, shift;
  __device__ explicit Law(const uint32_t* table) : factor(table[1] - table[0]), shift(table[0]) {}
  __device__ uint32_t next(uint32_t at) const { return factor * at + shift; }
};

__device__ inline uint64_t nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Starts when it is made. stop() waits until this thread has `at`, the result of the last step; then the first thread
// of the grid writes the cycles that its SM has counted, the nanoseconds, and the SM's number.
class Clock {
 public:
  __device__ Clock() {
    nanoseconds_ = nanoseconds();
    cycles_ = clock64();
  }
  __device__ void stop(uint32_t at, uint32_t* ticks) const {
    if (at == UINT32_MAX) __trap();  // never true: no table has so many words
    const auto cycles = static_cast<uint32_t>(clock64() - cycles_);
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    uint32_t multiprocessor;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(multiprocessor));
    const auto elapsed = static_cast<uint32_t>(nanoseconds() - nanoseconds_);
    *reinterpret_cast<uint4*>(ticks) = make_uint4(cycles, elapsed, multiprocessor, 0);
  }

 private:
  uint64_t nanoseconds_;
  long long cycles_;
};

constexpr int kSharedWords = 1 << 13;  // 32 KB of a block's shared memory

inline const char* one_block(const Shape& shape) {
  if (shape[0] > INT32_MAX || (shape[0] & (shape[0] - 1)) != 0)
    return "a walk needs a power of two; give --n 32, 64, 128 and so on, 1073741824 at most";
  return shape[1] > 32 ? "one block has at most 32 warps; give --warps 32 or less" : nullptr;
}
inline const char* in_shared(const Shape& shape) {
  if (shape[0] > kSharedWords) return "shared memory holds 8192 words of the table; give --n 8192 or less";
  return one_block(shape);
}

// One block of `warps` warps.
template <auto kernel>
void launch_block(const uint32_t* table, uint32_t* end, uint32_t*, uint32_t* ticks, int64_t n, int64_t warps,
                  int64_t apart, cudaStream_t stream) {
  const auto last = static_cast<uint32_t>(n - 1);
  kernel<<<1, static_cast<unsigned>(32 * warps), 0, stream>>>(table, end, ticks, last, static_cast<uint32_t>(apart));
}

// The same after a copy of the table, which the kernel may write to.
template <auto kernel>
void launch_on_copy(const uint32_t* table, uint32_t* end, uint32_t* copy, uint32_t* ticks, int64_t n, int64_t warps,
                    int64_t apart, cudaStream_t stream) {
  const auto last = static_cast<uint32_t>(n - 1);
  CUDA_CHECK(cudaMemcpyAsync(copy, table, 4 * (size_t{last} + 1), cudaMemcpyDeviceToDevice, stream));
  kernel<<<1, static_cast<unsigned>(32 * warps), 0, stream>>>(copy, end, ticks, last, static_cast<uint32_t>(apart));
}

// `blocks` blocks of `warps` warps that depend on each other: a cluster, or a grid whose blocks all run.
template <auto kernel>
void launch_blocks(int blocks, cudaLaunchAttribute attribute, const uint32_t* table, uint32_t* end, uint32_t* ticks,
                   int64_t n, int64_t warps, int64_t apart, cudaStream_t stream) {
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(32 * warps));
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  const auto last = static_cast<uint32_t>(n - 1);
  CUDA_CHECK(cudaLaunchKernelEx(&config, kernel, table, end, ticks, last, static_cast<uint32_t>(apart)));
}

}  // namespace ladder::latency
