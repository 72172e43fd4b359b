// cuBLAS's products of matrices on this machine's BLAS, by its Fortran names, which every BLAS has and whose matrices
// lie column by column as cuBLAS's do.
#include "cublas_v2.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cublas_context.h"
#include "environment.h"
#include "memory.h"

using namespace simt;

namespace {

template <class T>
using Gemm = void (*)(const char* op_a, const char* op_b, const int* m, const int* n, const int* k, const T* alpha,
                      const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc);
struct Blas {
  Gemm<float> sgemm = nullptr;
  Gemm<double> dgemm = nullptr;
};

const Blas& blas() {
  static const Blas found = [] {
    Blas blas;
    const std::optional<std::string> chosen = setting("SIMT_BLAS");
    std::vector<const char*> names = {"libopenblas.so.0", "libopenblas.so", "libmkl_rt.so", "libblas.so.3",
                                      "libblas.so"};
    if (chosen) names = {chosen->c_str()};
    for (const char* name : names) {
      void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (!library) continue;
      blas.sgemm = reinterpret_cast<Gemm<float>>(dlsym(library, "sgemm_"));
      blas.dgemm = reinterpret_cast<Gemm<double>>(dlsym(library, "dgemm_"));
      if (blas.sgemm && blas.dgemm) break;
    }
    return blas;
  }();
  return found;
}

template <class T>
Gemm<T> gemm();
template <>
Gemm<float> gemm() {
  return blas().sgemm;
}
template <>
Gemm<double> gemm() {
  return blas().dgemm;
}

struct Matrix {
  const void* data;
  cudaDataType type;
  int rows, columns, leading;
  long long stride;

  size_t size() const {
    return static_cast<size_t>(leading) * static_cast<size_t>(columns - 1) + static_cast<size_t>(rows);
  }
  const void* batch(int b) const {
    return static_cast<const char*>(data) + static_cast<long long>(size_of(type)) * stride * b;
  }
  bool stands() const { return rows == 0 || columns == 0 || stands_on(Side::device, data, size() * size_of(type)); }
  // The elements of a batch as T, in memory of its own where they are none.
  template <class T>
  const T* as(int b, cudaDataType own, std::vector<T>& converted) const {
    if (type == own) return static_cast<const T*>(batch(b));
    converted.resize(size());
    for (int column = 0; column < columns; ++column)
      for (int row = 0; row < rows; ++row) {
        const size_t i = static_cast<size_t>(column) * static_cast<size_t>(leading) + static_cast<size_t>(row);
        converted[i] = static_cast<T>(get(batch(b), i, type));
      }
    return converted.data();
  }
};

template <class T>
void multiply(cublasOperation_t op_a, cublasOperation_t op_b, int k, double alpha, const Matrix& a, const Matrix& b,
              double beta, const Matrix& c, int batches) {
  constexpr cudaDataType kOwn = sizeof(T) == 4 ? CUDA_R_32F : CUDA_R_64F;
  const char letters[] = {op_a == CUBLAS_OP_N ? 'N' : 'T', op_b == CUBLAS_OP_N ? 'N' : 'T'};
  const T times = static_cast<T>(alpha), keep = static_cast<T>(beta);
  std::vector<T> ta, tb, tc;
  for (int batch = 0; batch < batches; ++batch) {
    T* result = const_cast<T*>(c.as<T>(batch, kOwn, tc));
    gemm<T>()(letters, letters + 1, &c.rows, &c.columns, &k, &times, a.as<T>(batch, kOwn, ta), &a.leading,
              b.as<T>(batch, kOwn, tb), &b.leading, &keep, result, &c.leading);
    note_written(c.batch(batch), c.size() * size_of(c.type));
    if (c.type == kOwn) continue;
    for (int column = 0; column < c.columns; ++column)
      for (int row = 0; row < c.rows; ++row) {
        const size_t i = static_cast<size_t>(column) * static_cast<size_t>(c.leading) + static_cast<size_t>(row);
        put(const_cast<void*>(c.batch(batch)), i, c.type, static_cast<double>(result[i]));
      }
  }
}

// The type of alpha and beta, which follows from that of the sums; CUDA_C_32F for what is not supported.
cudaDataType scale_type(cublasComputeType_t compute, cudaDataType a, cudaDataType b, cudaDataType c) {
  constexpr cudaDataType kNone = CUDA_C_32F;
  const bool is_small = a == CUDA_R_16F || a == CUDA_R_16BF;
  if (a != b) return kNone;
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return a == CUDA_R_16F && c == CUDA_R_16F ? CUDA_R_16F : kNone;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return a == CUDA_R_8I && c == CUDA_R_32I ? CUDA_R_32I : kNone;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return a == CUDA_R_64F && c == CUDA_R_64F ? CUDA_R_64F : kNone;
    default:
      if (a == CUDA_R_32F || a == CUDA_R_8I) return c == CUDA_R_32F ? CUDA_R_32F : kNone;
      return is_small && (c == a || c == CUDA_R_32F) ? CUDA_R_32F : kNone;
  }
}

}  // namespace

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m,
                                          int n, int k, const void* alpha, const void* A, cudaDataType typeA, int lda,
                                          long long int strideA, const void* B, cudaDataType typeB, int ldb,
                                          long long int strideB, const void* beta, void* C, cudaDataType typeC, int ldc,
                                          long long int strideC, int batchCount, cublasComputeType_t computeType,
                                          cublasGemmAlgo_t) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool plain_a = opA == CUBLAS_OP_N, plain_b = opB == CUBLAS_OP_N;
  const Matrix a{A, typeA, plain_a ? m : k, plain_a ? k : m, lda, strideA};
  const Matrix b{B, typeB, plain_b ? k : n, plain_b ? n : k, ldb, strideB};
  const Matrix c{C, typeC, m, n, ldc, strideC};
  if (m < 0 || n < 0 || k < 0 || batchCount < 0 || !alpha || !beta || opA < 0 || opA > CUBLAS_OP_C || opB < 0 ||
      opB > CUBLAS_OP_C || lda < std::max(1, a.rows) || ldb < std::max(1, b.rows) || ldc < std::max(1, m))
    return CUBLAS_STATUS_INVALID_VALUE;
  const cudaDataType scale = scale_type(computeType, typeA, typeB, typeC);
  return status_of(api([&] {
    if (!size_of(scale)) return not_supported("cublasGemmEx: the CPU device has no product of matrices of these types");
    if (!blas().sgemm || !blas().dgemm)
      return not_supported(
          "cuBLAS: a product of matrices needs a BLAS on this machine, and none was found: apt-get install "
          "libopenblas0, or set SIMT_BLAS to a library with sgemm_ and dgemm_");
    if (m == 0 || n == 0 || batchCount == 0) return cudaSuccess;
    if (!a.stands() || !b.stands() || !c.stands()) return cudaErrorInvalidValue;
    const bool on_device = handle->pointers == CUBLAS_POINTER_MODE_DEVICE;
    const double times = on_device ? 0 : get(alpha, 0, scale), keep = on_device ? 0 : get(beta, 0, scale);
    return enqueue(handle->stream, [=] {
      const double by = on_device ? get(alpha, 0, scale) : times, and_by = on_device ? get(beta, 0, scale) : keep;
      if (scale == CUDA_R_64F || scale == CUDA_R_32I)
        multiply<double>(opA, opB, k, by, a, b, and_by, c, batchCount);
      else
        multiply<float>(opA, opB, k, by, a, b, and_by, c, batchCount);
      return cudaSuccess;
    });
  }));
}

// --- Handles -------------------------------------------------------------------------------------------------------

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->known = 0;
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

namespace {
template <class Value>
cublasStatus_t set(cublasHandle_t handle, Value cublasContext::*member, Value value) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->*member = value;
  return CUBLAS_STATUS_SUCCESS;
}
template <class Value>
cublasStatus_t give(cublasHandle_t handle, Value cublasContext::*member, Value* value) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!value) return CUBLAS_STATUS_INVALID_VALUE;
  *value = handle->*member;
  return CUBLAS_STATUS_SUCCESS;
}
}  // namespace

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  return set(handle, &cublasContext::stream, stream);
}
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream) {
  return give(handle, &cublasContext::stream, stream);
}
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode) {
  return set(handle, &cublasContext::math, mode);
}
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode) {
  return give(handle, &cublasContext::math, mode);
}
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode) {
  return set(handle, &cublasContext::pointers, mode);
}
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode) {
  return give(handle, &cublasContext::pointers, mode);
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, size_t) {
  return is_known(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}
cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  if (!version) return CUBLAS_STATUS_INVALID_VALUE;
  *version = CUBLAS_VERSION;
  return CUBLAS_STATUS_SUCCESS;
}

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define SIMT_STATUS(name) \
  case name:              \
    return #name;
    SIMT_STATUS(CUBLAS_STATUS_SUCCESS)
    SIMT_STATUS(CUBLAS_STATUS_NOT_INITIALIZED)
    SIMT_STATUS(CUBLAS_STATUS_ALLOC_FAILED)
    SIMT_STATUS(CUBLAS_STATUS_INVALID_VALUE)
    SIMT_STATUS(CUBLAS_STATUS_ARCH_MISMATCH)
    SIMT_STATUS(CUBLAS_STATUS_MAPPING_ERROR)
    SIMT_STATUS(CUBLAS_STATUS_EXECUTION_FAILED)
    SIMT_STATUS(CUBLAS_STATUS_INTERNAL_ERROR)
    SIMT_STATUS(CUBLAS_STATUS_NOT_SUPPORTED)
    SIMT_STATUS(CUBLAS_STATUS_LICENSE_ERROR)
#undef SIMT_STATUS
  }
  return "unknown status";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "an invalid value was used as an argument";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "the function failed to launch on the device";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "the functionality is not supported";
    default:
      return "an internal operation failed";
  }
}
