// One way to move bytes, as the rest of the lesson sees it, and what the launchers of all ways share.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"

namespace memory_bandwidth {

enum class Moves { copy, read, write };

// count floats each, neither pointer necessarily aligned beyond 4 bytes. Launches on the stream, returns without
// waiting. copy: to = from, bit by bit. read: the words of `to`, zero before, then add up to the sum of the words of
// `from`, modulo 2^32. write: word i of `to` is pattern(i).
using Launch = void (*)(const float* from, float* to, int64_t count, cudaStream_t stream);

struct Variant {
  const char* name;
  const char* what;  // one line for --list
  Moves moves;
  int threads;       // a block; 0: the runtime's own copy
  int access_bytes;  // what one lane moves at a time
  int lane_stride;   // bytes from one lane's address to the next one's
  Launch launch;
};

constexpr uint32_t kPatternStep = 0x9e3779b9u;

// The blocks it takes if each covers so many floats.
inline int64_t blocks_for(int64_t count, int64_t floats) { return (count + floats - 1) / floats; }

// Whether both may be accessed as vectors of type V.
template <class V>
bool aligned_for(const float* from, const float* to) {
  return (reinterpret_cast<uintptr_t>(from) | reinterpret_cast<uintptr_t>(to)) % sizeof(V) == 0;
}

// How many blocks of a kernel the whole device holds at once.
template <class Kernel>
int64_t resident_blocks(Kernel kernel, int threads) {
  int device = 0, multiprocessors = 0, blocks = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
  return static_cast<int64_t>(multiprocessors) * blocks;
}

}  // namespace memory_bandwidth
