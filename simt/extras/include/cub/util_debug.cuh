// Macros of CUB that report errors.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "cuda_runtime_api.h"

#define CubDebug(call) cub::Debug((call), __FILE__, __LINE__)
#define CubDebugExit(call)            \
  do {                                \
    if (CubDebug(call)) std::exit(1); \
  } while (0)

namespace cub {
inline cudaError_t Debug(cudaError_t error, const char* file, int line) {
  cudaGetLastError();
  if (error) std::fprintf(stderr, "CUDA error %d [%s, %d]: %s\n", error, file, line, cudaGetErrorString(error));
  return error;
}
}  // namespace cub
