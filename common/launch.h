// What launchers share: how many blocks, and whether vectors may be used.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"

namespace ladder {

// The number of blocks if each covers that many elements.
inline int64_t blocks_for(int64_t count, int64_t elements) { return (count + elements - 1) / elements; }

// Whether both may be accessed as vectors of type V.
template <class V>
bool aligned_for(const void* a, const void* b) {
  return (reinterpret_cast<uintptr_t>(a) | reinterpret_cast<uintptr_t>(b)) % sizeof(V) == 0;
}

inline int multiprocessors() {
  int device = 0, count = 0;
  CUDA_CHECK(cudaGetDevice(&device));
  CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// How many blocks of a kernel the whole device holds at once.
template <class Kernel>
int64_t resident_blocks(Kernel kernel, int threads) {
  int blocks = 0;
  CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
  return int64_t{multiprocessors()} * blocks;
}

}  // namespace ladder
