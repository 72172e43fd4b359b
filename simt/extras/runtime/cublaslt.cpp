// cuBLASLt, by cuBLAS's product of matrices.
#include "cublasLt.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "cublas_context.h"
#include "memory.h"

using namespace simt;

struct cublasLtContext {
  cublasContext blas;
};

namespace {

template <class T>
cublasStatus_t set(T& member, const void* value, size_t size) {
  if (!value || size != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&member, value, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

template <class T>
cublasStatus_t destroy(T* object) {
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

cublasOperation_t flipped(cublasOperation_t op) { return op == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N; }

bool is_known_epilogue(int epilogue) {
  return epilogue == CUBLASLT_EPILOGUE_DEFAULT ||
         !(epilogue & ~(CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_RELU | CUBLASLT_EPILOGUE_GELU));
}

struct Place {  // where the element (row, column) of a batch lies
  cublasLtMatrixLayoutOpaque_t layout;
  size_t operator()(int batch, size_t row, size_t column) const {
    const size_t ld = static_cast<size_t>(layout.ld);
    return static_cast<size_t>(layout.stride) * static_cast<size_t>(batch) +
           (layout.order == CUBLASLT_ORDER_COL ? column * ld + row : row * ld + column);
  }
  size_t size() const {
    return layout.rows && layout.columns ? (*this)(0, layout.rows - 1, layout.columns - 1) + 1 : 0;
  }
  bool stands(const void* data) const {
    return !size() || stands_on(Side::device, data, size() * size_of(layout.type));
  }
  template <class Body>
  void for_each(Body body) const {
    for (int batch = 0; batch < layout.batches; ++batch)
      for (size_t column = 0; column < layout.columns; ++column)
        for (size_t row = 0; row < layout.rows; ++row) body(batch, row, column);
  }
};

}  // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  *handle = new cublasLtContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) { return destroy(handle); }

cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute, cudaDataType scale) {
  if (!desc) return CUBLAS_STATUS_INVALID_VALUE;
  *desc = {compute, scale, CUBLASLT_POINTER_MODE_HOST, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_EPILOGUE_DEFAULT,
           nullptr, true};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType scale) {
  if (!desc) return CUBLAS_STATUS_INVALID_VALUE;
  return cublasLtMatmulDescInit(*desc = new cublasLtMatmulDescOpaque_t, compute, scale);
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return destroy(desc); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  if (!desc) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE:
      return set(desc->compute, value, size);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE:
      return set(desc->scale, value, size);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE:
      return set(desc->pointers, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(desc->a, value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(desc->b, value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(desc->epilogue, value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(desc->bias, value, size);
    case CUBLASLT_MATMUL_DESC_FAST_ACCUM:
      return CUBLAS_STATUS_SUCCESS;
    default:
      desc->is_supported = false;
      return CUBLAS_STATUS_SUCCESS;
  }
}

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, unsigned long long rows,
                                        unsigned long long columns, long long ld) {
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  *layout = {type, CUBLASLT_ORDER_COL, rows, columns, ld, 1, 0};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, unsigned long long rows,
                                          unsigned long long columns, long long ld) {
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  return cublasLtMatrixLayoutInit(*layout = new cublasLtMatrixLayoutOpaque_t, type, rows, columns, ld);
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return destroy(layout); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t size) {
  if (!layout) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE:
      return set(layout->type, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ORDER:
      return set(layout->order, value, size);
    case CUBLASLT_MATRIX_LAYOUT_ROWS:
      return set(layout->rows, value, size);
    case CUBLASLT_MATRIX_LAYOUT_COLS:
      return set(layout->columns, value, size);
    case CUBLASLT_MATRIX_LAYOUT_LD:
      return set(layout->ld, value, size);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return set(layout->batches, value, size);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return set(layout->stride, value, size);
  }
  return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference) {
  if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
  *preference = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (!preference) return CUBLAS_STATUS_INVALID_VALUE;
  return cublasLtMatmulPreferenceInit(*preference = new cublasLtMatmulPreferenceOpaque_t);
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return destroy(preference); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t, const void* value, size_t) {
  return preference && value ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t, int requested,
                                              cublasLtMatmulHeuristicResult_t* results, int* returned) {
  if (!handle || !desc || !a || !b || !c || !d || requested < 1 || !results || !returned)
    return CUBLAS_STATUS_INVALID_VALUE;
  results[0] = {};
  results[0].wavesCount = 1;
  *returned = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void* alpha, const void* A,
                              cublasLtMatrixLayout_t a, const void* B, cublasLtMatrixLayout_t b, const void* beta,
                              const void* C, cublasLtMatrixLayout_t c, void* D, cublasLtMatrixLayout_t d,
                              const cublasLtMatmulAlgo_t*, void*, size_t, cudaStream_t stream) {
  if (!handle || !desc || !a || !b || !c || !d || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
  const unsigned long long m = d->rows, n = d->columns, k = desc->a == CUBLAS_OP_N ? a->columns : a->rows;
  if ((desc->a == CUBLAS_OP_N ? a->rows : a->columns) != m || (desc->b == CUBLAS_OP_N ? b->rows : b->columns) != k ||
      (desc->b == CUBLAS_OP_N ? b->columns : b->rows) != n || c->rows != m || c->columns != n || c->type != d->type ||
      a->batches != d->batches || b->batches != d->batches || c->batches != d->batches)
    return CUBLAS_STATUS_INVALID_VALUE;
  const Place to{*d}, from{*c};
  const int epilogue = desc->epilogue;
  const void* bias = epilogue & CUBLASLT_EPILOGUE_BIAS ? desc->bias : nullptr;
  const cublasStatus_t ready = status_of(api([&] {
    if (!desc->is_supported || !is_known_epilogue(epilogue))
      return not_supported("cublasLtMatmul: the CPU device has neither this epilogue nor scales of 8-bit floats");
    if (!to.stands(D) || (epilogue & CUBLASLT_EPILOGUE_BIAS && !bias)) return cudaErrorInvalidValue;
    if (!C || C == D) return cudaSuccess;
    if (!from.stands(C)) return cudaErrorInvalidValue;
    return enqueue(stream, [=] {
      to.for_each([&](int batch, size_t row, size_t column) {
        put(D, to(batch, row, column), to.layout.type, get(C, from(batch, row, column), to.layout.type));
      });
      return cudaSuccess;
    });
  }));
  if (ready != CUBLAS_STATUS_SUCCESS) return ready;

  // A matrix in rows is the transpose of one in columns; if the result lies in rows, its transpose is computed.
  auto op_a = a->order == CUBLASLT_ORDER_COL ? desc->a : flipped(desc->a);
  auto op_b = b->order == CUBLASLT_ORDER_COL ? desc->b : flipped(desc->b);
  handle->blas.stream = stream;
  handle->blas.pointers = static_cast<cublasPointerMode_t>(desc->pointers);
  const auto product = [&](cublasOperation_t op_x, const void* X, cublasLtMatrixLayout_t x, cublasOperation_t op_y,
                           const void* Y, cublasLtMatrixLayout_t y, unsigned long long rows,
                           unsigned long long columns) {
    return cublasGemmStridedBatchedEx(
        &handle->blas, op_x, op_y, static_cast<int>(rows), static_cast<int>(columns), static_cast<int>(k), alpha, X,
        x->type, static_cast<int>(x->ld), x->stride, Y, y->type, static_cast<int>(y->ld), y->stride, beta, D, d->type,
        static_cast<int>(d->ld), d->stride, d->batches, desc->compute, CUBLAS_GEMM_DEFAULT);
  };
  const cublasStatus_t status = d->order == CUBLASLT_ORDER_COL
                                    ? product(op_a, A, a, op_b, B, b, m, n)
                                    : product(flipped(op_b), B, b, flipped(op_a), A, a, n, m);
  if (status != CUBLAS_STATUS_SUCCESS || epilogue == CUBLASLT_EPILOGUE_DEFAULT) return status;
  return status_of(api([&] {
    return enqueue(stream, [=] {
      to.for_each([&](int batch, size_t row, size_t column) {
        const size_t at = to(batch, row, column);
        double x = get(D, at, to.layout.type);
        if (bias) x += get(bias, row, to.layout.type);
        if (epilogue & CUBLASLT_EPILOGUE_RELU) x = std::max(x, 0.0);
        if (epilogue & CUBLASLT_EPILOGUE_GELU)
          x *= 0.5 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
        put(D, at, to.layout.type, x);
      });
      return cudaSuccess;
    });
  }));
}
