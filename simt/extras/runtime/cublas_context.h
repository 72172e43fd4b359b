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

// Elements of any type.
inline size_t size_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return 8;
    case CUDA_R_32F:
    case CUDA_R_32I:
      return 4;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_8I:
      return 1;
    default:
      return 0;
  }
}

inline double get(const void* from, size_t i, cudaDataType type) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(from)[i];
    case CUDA_R_32F:
      return static_cast<const float*>(from)[i];
    case CUDA_R_32I:
      return static_cast<const int*>(from)[i];
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(from)[i]);
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(from)[i]);
    default:
      return static_cast<const signed char*>(from)[i];
  }
}
inline void put(void* to, size_t i, cudaDataType type, double value) {
  switch (type) {
    case CUDA_R_64F:
      static_cast<double*>(to)[i] = value;
      break;
    case CUDA_R_32F:
      static_cast<float*>(to)[i] = static_cast<float>(value);
      break;
    case CUDA_R_32I:
      static_cast<int*>(to)[i] = static_cast<int>(value);
      break;
    case CUDA_R_16F:
      static_cast<__half*>(to)[i] = __float2half(static_cast<float>(value));
      break;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(to)[i] = __float2bfloat16(static_cast<float>(value));
      break;
    default:
      static_cast<signed char*>(to)[i] = static_cast<signed char>(value);
  }
}

}  // namespace simt
