// CUDA_CHECK(call): a failed CUDA call becomes an exception that says what failed, how and where. Every file of a
// kernel includes this header, which leaves out <string> and <stdexcept> because the compiler takes long to read them.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdio>
#include <exception>

namespace ladder {

struct CudaError : std::exception {
  CudaError(cudaError_t error, const char* call, const char* file = nullptr, int line = 0) : code(error) {
    const int end =
        std::snprintf(said_, sizeof said_, "%s (%s) from %s", cudaGetErrorName(error), cudaGetErrorString(error), call);
    const auto at = static_cast<size_t>(end);
    if (file != nullptr && at < sizeof said_) std::snprintf(said_ + at, sizeof said_ - at, " at %s:%d", file, line);
  }
  const char* what() const noexcept { return said_; }  // clang, as editors' help, sees nothing to override

  cudaError_t code;

 private:
  char said_[1500];
};

inline void cuda_check(cudaError_t error, const char* call, const char* file, int line) {
  if (error != cudaSuccess) throw CudaError(error, call, file, line);
}

}  // namespace ladder

#define CUDA_CHECK(call) ::ladder::cuda_check((call), #call, __FILE__, __LINE__)
