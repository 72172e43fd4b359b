// What cuBLAS's functions share.
#pragma once
#include "cublas_v2.h"
#include "state.h"

struct cublasContext {
  static constexpr uint64_t kKnown = 0x63754264617321;
  uint64_t known = kKnown;
  cudaStream_t stream = nullptr;
  cublasMath_t math = CUBLAS_DEFAULT_MATH;
  cublasPointerMode_t pointers = CUBLAS_POINTER_MODE_HOST;
};

namespace simt {

inline bool is_known(cublasHandle_t handle) { return handle && handle->known == cublasContext::kKnown; }

inline cublasStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess                 ? CUBLAS_STATUS_SUCCESS
         : error == cudaErrorNotSupported     ? CUBLAS_STATUS_NOT_SUPPORTED
         : error == cudaErrorInvalidValue     ? CUBLAS_STATUS_INVALID_VALUE
         : error == cudaErrorMemoryAllocation ? CUBLAS_STATUS_ALLOC_FAILED
                                              : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // namespace simt
