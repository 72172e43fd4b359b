// cuBLAS for float and double: vectors (level 1), a matrix and vectors (level 2, no banded or packed ones), and
// products of matrices. A product runs on this machine's BLAS, which is looked for at the first call; SIMT_BLAS names
// another library. Without one, the call is refused. All else are plain loops.
#pragma once
#include <cuComplex.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "cuda_runtime_api.h"
#include "library_types.h"

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VERSION 130000

typedef struct cublasContext* cublasHandle_t;

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
};
enum cublasOperation_t : int {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
  CUBLAS_OP_HERMITAN = 2,
  CUBLAS_OP_CONJG = 3
};
enum cublasFillMode_t : int { CUBLAS_FILL_MODE_LOWER = 0, CUBLAS_FILL_MODE_UPPER = 1 };
enum cublasDiagType_t : int { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 };
enum cublasPointerMode_t : int { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };
enum cublasMath_t : int {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73
};
enum cublasGemmAlgo_t : int { CUBLAS_GEMM_DFALT = -1, CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 };

extern "C" {
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);  // all products are in full precision
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, size_t size);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);

// --- Copies between host and device: n elements `inc` apart, and columns `ld` elements apart
// ---------------------------
cublasStatus_t cublasSetVector(int n, int elementSize, const void* host, int incx, void* device, int incy);
cublasStatus_t cublasGetVector(int n, int elementSize, const void* device, int incx, void* host, int incy);
cublasStatus_t cublasSetMatrix(int rows, int columns, int elementSize, const void* host, int lda, void* device,
                               int ldb);
cublasStatus_t cublasGetMatrix(int rows, int columns, int elementSize, const void* device, int lda, void* host,
                               int ldb);
cublasStatus_t cublasSetVectorAsync(int n, int elementSize, const void* host, int incx, void* device, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasGetVectorAsync(int n, int elementSize, const void* device, int incx, void* host, int incy,
                                    cudaStream_t stream);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int elementSize, const void* host, int lda, void* device,
                                    int ldb, cudaStream_t stream);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int elementSize, const void* device, int lda, void* host,
                                    int ldb, cudaStream_t stream);

// --- Levels 1 and 2 ------------------------------------------------------------------------------------------------
// Indices that I?amax and I?amin give count from one. Results and factors are host memory, or device memory after
// cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE).
#define SIMT_LEVELS(L, l, T)                                                                                           \
  cublasStatus_t cublasI##l##amax(cublasHandle_t handle, int n, const T* x, int incx, int* result);                    \
  cublasStatus_t cublasI##l##amin(cublasHandle_t handle, int n, const T* x, int incx, int* result);                    \
  cublasStatus_t cublas##L##asum(cublasHandle_t handle, int n, const T* x, int incx, T* result);                       \
  cublasStatus_t cublas##L##nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* result);                       \
  cublasStatus_t cublas##L##dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result);  \
  cublasStatus_t cublas##L##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy);  \
  cublasStatus_t cublas##L##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx);                        \
  cublasStatus_t cublas##L##copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy);                  \
  cublasStatus_t cublas##L##swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy);                        \
  cublasStatus_t cublas##L##rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy, const T* c, const T* s); \
  cublasStatus_t cublas##L##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const T* alpha,            \
                                 const T* A, int lda, const T* x, int incx, const T* beta, T* y, int incy);            \
  cublasStatus_t cublas##L##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, \
                                int incy, T* A, int lda);                                                              \
  cublasStatus_t cublas##L##symv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* A,      \
                                 int lda, const T* x, int incx, const T* beta, T* y, int incy);                        \
  cublasStatus_t cublas##L##syr(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,       \
                                int incx, T* A, int lda);                                                              \
  cublasStatus_t cublas##L##syr2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,      \
                                 int incx, const T* y, int incy, T* A, int lda);                                       \
  cublasStatus_t cublas##L##trmv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,                   \
                                 cublasDiagType_t diagonal, int n, const T* A, int lda, T* x, int incx);               \
  cublasStatus_t cublas##L##trsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,                   \
                                 cublasDiagType_t diagonal, int n, const T* A, int lda, T* x, int incx);               \
  cublasStatus_t cublas##L##geam(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n,    \
                                 const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C,        \
                                 int ldc);
SIMT_LEVELS(S, s, float)
SIMT_LEVELS(D, d, double)
#undef SIMT_LEVELS

// C = alpha A B + beta C, column by column, as BLAS has it. Batches lie `stride` elements apart.
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m,
                                          int n, int k, const void* alpha, const void* A, cudaDataType typeA, int lda,
                                          long long int strideA, const void* B, cudaDataType typeB, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType typeC, int ldc,
                                          long long int strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t algo);
}  // extern "C"

inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n,
                                   int k, const void* alpha, const void* A, cudaDataType typeA, int lda, const void* B,
                                   cudaDataType typeB, int ldb, const void* beta, void* C, cudaDataType typeC, int ldc,
                                   cublasComputeType_t computeType, cublasGemmAlgo_t algo) {
  return cublasGemmStridedBatchedEx(handle, opA, opB, m, n, k, alpha, A, typeA, lda, 0, B, typeB, ldb, 0, beta, C,
                                    typeC, ldc, 0, 1, computeType, algo);
}

// The form before CUDA 11, with the type of the sums in place of a cublasComputeType_t.
inline cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n,
                                   int k, const void* alpha, const void* A, cudaDataType typeA, int lda, const void* B,
                                   cudaDataType typeB, int ldb, const void* beta, void* C, cudaDataType typeC, int ldc,
                                   cudaDataType sums, cublasGemmAlgo_t algo) {
  const cublasComputeType_t compute = sums == CUDA_R_16F   ? CUBLAS_COMPUTE_16F
                                      : sums == CUDA_R_64F ? CUBLAS_COMPUTE_64F
                                      : sums == CUDA_R_32I ? CUBLAS_COMPUTE_32I
                                                           : CUBLAS_COMPUTE_32F;
  if (compute == CUBLAS_COMPUTE_32F && sums != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return cublasGemmEx(handle, opA, opB, m, n, k, alpha, A, typeA, lda, B, typeB, ldb, beta, C, typeC, ldc, compute,
                      algo);
}

#define SIMT_GEMM(letter, T, type, compute)                                                                           \
  inline cublasStatus_t cublas##letter##gemmStridedBatched(                                                           \
      cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n, int k, const T* alpha,       \
      const T* A, int lda, long long int strideA, const T* B, int ldb, long long int strideB, const T* beta, T* C,    \
      int ldc, long long int strideC, int batchCount) {                                                               \
    return cublasGemmStridedBatchedEx(handle, opA, opB, m, n, k, alpha, A, type, lda, strideA, B, type, ldb, strideB, \
                                      beta, C, type, ldc, strideC, batchCount, compute, CUBLAS_GEMM_DEFAULT);         \
  }                                                                                                                   \
  inline cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB,     \
                                             int m, int n, int k, const T* alpha, const T* A, int lda, const T* B,    \
                                             int ldb, const T* beta, T* C, int ldc) {                                 \
    return cublasGemmEx(handle, opA, opB, m, n, k, alpha, A, type, lda, B, type, ldb, beta, C, type, ldc, compute,    \
                        CUBLAS_GEMM_DEFAULT);                                                                         \
  }
SIMT_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
SIMT_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
SIMT_GEMM(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
#undef SIMT_GEMM

#define cublasCreate_v2 cublasCreate
#define cublasDestroy_v2 cublasDestroy
#define cublasSetStream_v2 cublasSetStream
#define cublasGetStream_v2 cublasGetStream
#define cublasSgemm_v2 cublasSgemm
#define cublasDgemm_v2 cublasDgemm
