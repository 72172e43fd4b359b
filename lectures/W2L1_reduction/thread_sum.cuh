// What reduction8 and reduction9 share: reduction7's way to read the input, for other numbers of threads and loads.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ladder::reduction {

__device__ inline float sum_of(float4 x) { return (x.x + x.y) + (x.z + x.w); }

// kStreaming: a hint to the caches that each byte is read once.
template <bool kStreaming>
__device__ float4 load(const float4* from) {
  return kStreaming ? __ldcs(from) : *from;
}

// The sum of this thread's share of the input.
template <int kThreads, int kVectors, bool kStreaming = false>
__device__ float thread_sum(const float* input, int64_t n) {
  const int tid = threadIdx.x;
  constexpr int64_t kTile = kThreads * kVectors;  // in vectors
  // Floats past a multiple of 16 bytes; before the first vector; and the number of vectors.
  const auto past = static_cast<int>(reinterpret_cast<uintptr_t>(input) / sizeof(float) % 4);
  const int64_t head = min(static_cast<int64_t>((4 - past) % 4), n);
  const int64_t count = (n - head) / 4;
  const auto* vectors = reinterpret_cast<const float4*>(input + head);

  float sum = 0.0f;
  int64_t first = blockIdx.x * kTile;
  for (; first + kTile <= count; first += gridDim.x * kTile) {
    float4 x[kVectors];
#pragma unroll
    for (int k = 0; k < kVectors; ++k) x[k] = load<kStreaming>(vectors + first + k * kThreads + tid);
#pragma unroll
    for (int k = 0; k < kVectors; ++k) sum += sum_of(x[k]);
  }
#pragma unroll 1  // it runs in one block
  for (int64_t i = first + tid; i < count; i += kThreads) sum += sum_of(load<kStreaming>(vectors + i));

  if (blockIdx.x == gridDim.x - 1) {
    const int64_t tail = head + 4 * count;
    if (tid < head) sum += input[tid];
    if (tid < n - tail) sum += input[tail + tid];
  }
  return sum;
}

}  // namespace ladder::reduction
