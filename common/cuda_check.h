// CUDA_CHECK(call): a failed CUDA call becomes an exception that says what failed, how and where.
#pragma once
#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace ladder {

struct CudaError : std::runtime_error {
  CudaError(cudaError_t error, const std::string& call)
      : std::runtime_error(std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ") from " + call),
        code(error) {}
  CudaError(cudaError_t error, const char* call, const char* file, int line)
      : CudaError(error, std::string(call) + " at " + file + ":" + std::to_string(line)) {}
  cudaError_t code;
};

inline void cuda_check(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) throw CudaError(error, call, file, line);
}

}  // namespace ladder

#define CUDA_CHECK(call) ::ladder::cuda_check((call), #call, __FILE__, __LINE__)
