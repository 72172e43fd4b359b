// cuBLAS's levels 1 and 2, and its copies, as plain loops. Matrices lie column by column.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "cublas_context.h"
#include "memory.h"

using namespace simt;

namespace {

// Elements from data on. What is not const, a function writes.
template <class T>
struct Elements {
  T* data;
  size_t count;

  bool stand() const { return count == 0 || stands_on(Side::device, data, count * sizeof(T)); }
  void note() const {
    if (!std::is_const_v<T>) note_written(data, count * sizeof(T));
  }
};

// Elements `inc` apart; with a negative one, the first element is the last in memory.
template <class T>
struct Vector {
  T* data;
  int n, inc;

  T& operator[](int i) const {
    const long long step = inc;
    return data[inc < 0 ? (i - n + 1) * step : i * step];
  }
  Elements<T> elements() const {
    return {data, n > 0 ? static_cast<size_t>(n - 1) * static_cast<size_t>(std::abs(inc)) + 1 : 0};
  }
  bool stands() const { return elements().stand(); }
};

template <class T>
struct Matrix {
  T* data;
  int rows, columns, leading;

  T& operator()(int row, int column) const { return data[row + static_cast<long long>(column) * leading]; }
  Elements<T> elements() const {
    if (rows <= 0 || columns <= 0) return {data, 0};
    return {data, static_cast<size_t>(leading) * static_cast<size_t>(columns - 1) + static_cast<size_t>(rows)};
  }
  bool stands() const { return elements().stand(); }
  bool is_wide_enough() const { return rows >= 0 && columns >= 0 && leading >= std::max(1, rows); }
};

// A factor of the host is read when the function is called, one of the device when the stream gets there.
template <class T>
struct Factor {
  const T* place;
  bool on_device;
  T value;

  Factor(cublasHandle_t handle, const T* place)
      : place(place),
        on_device(handle->pointers == CUBLAS_POINTER_MODE_DEVICE),
        value(on_device || !place ? T{} : *place) {}
  operator T() const { return on_device ? *place : value; }
  Elements<const T> elements() const { return {place, on_device ? size_t{1} : 0}; }
  bool stands() const { return place && elements().stand(); }
};

template <class T>
struct Result {
  T* place;
  bool on_device;

  Result(cublasHandle_t handle, T* place) : place(place), on_device(handle->pointers == CUBLAS_POINTER_MODE_DEVICE) {}
  Elements<T> elements() const { return {place, on_device ? size_t{1} : 0}; }
  bool stands() const { return place && elements().stand(); }
};

// work(), when the stream gets there, if all that it uses is where it must be.
template <class Work, class... Used>
cublasStatus_t submit(cublasHandle_t handle, Work work, const Used&... used) {
  return status_of(api([&] {
    if (!(used.stands() && ...)) return cudaErrorInvalidValue;
    return enqueue(handle->stream, [work, used...] {
      work();
      (used.elements().note(), ...);
      return cudaSuccess;
    });
  }));
}

bool is_upper(cublasFillMode_t fill) { return fill == CUBLAS_FILL_MODE_UPPER; }

template <class T>
cublasStatus_t extreme(cublasHandle_t handle, Vector<const T> x, int* to, bool greatest) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Result<int> result(handle, to);
  const auto work = [=] {
    int found = 0;
    for (int i = 1; x.inc > 0 && i < x.n; ++i) {
      const T a = std::fabs(x[i]), b = std::fabs(x[found]);
      if (greatest ? a > b : a < b) found = i;
    }
    *result.place = x.n > 0 && x.inc > 0 ? found + 1 : 0;
  };
  return submit(handle, work, x, result);
}

template <class T, class Sum>
cublasStatus_t reduce(cublasHandle_t handle, Vector<const T> x, Vector<const T> y, T* to, Sum sum) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Result<T> result(handle, to);
  return submit(
      handle, [=] { *result.place = static_cast<T>(sum(x, y)); }, x, y, result);
}

template <class T>
cublasStatus_t dot(cublasHandle_t handle, Vector<const T> x, Vector<const T> y, T* to) {
  return reduce(handle, x, y, to, [](auto x, auto y) {
    double sum = 0;
    for (int i = 0; i < x.n; ++i) sum += static_cast<double>(x[i]) * static_cast<double>(y[i]);
    return sum;
  });
}
template <class T>
cublasStatus_t asum(cublasHandle_t handle, Vector<const T> x, T* to) {
  return reduce(handle, x, x, to, [](auto x, auto) {
    double sum = 0;
    for (int i = 0; i < x.n; ++i) sum += std::fabs(static_cast<double>(x[i]));
    return sum;
  });
}
template <class T>
cublasStatus_t nrm2(cublasHandle_t handle, Vector<const T> x, T* to) {
  return reduce(handle, x, x, to, [](auto x, auto) {
    double norm = 0;
    for (int i = 0; i < x.n; ++i) norm = std::hypot(norm, static_cast<double>(x[i]));
    return norm;
  });
}

template <class T>
cublasStatus_t axpy(cublasHandle_t handle, const T* by, Vector<const T> x, Vector<T> y) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Factor<T> alpha(handle, by);
  const auto work = [=] {
    for (int i = 0; i < x.n; ++i) y[i] += alpha * x[i];
  };
  return submit(handle, work, x, y, alpha);
}
template <class T>
cublasStatus_t scal(cublasHandle_t handle, const T* by, Vector<T> x) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Factor<T> alpha(handle, by);
  const auto work = [=] {
    for (int i = 0; i < x.n; ++i) x[i] *= alpha;
  };
  return submit(handle, work, x, alpha);
}
template <class T>
cublasStatus_t copy(cublasHandle_t handle, Vector<const T> x, Vector<T> y) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto work = [=] {
    for (int i = 0; i < x.n; ++i) y[i] = x[i];
  };
  return submit(handle, work, x, y);
}
template <class T>
cublasStatus_t swap(cublasHandle_t handle, Vector<T> x, Vector<T> y) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const auto work = [=] {
    for (int i = 0; i < x.n; ++i) std::swap(x[i], y[i]);
  };
  return submit(handle, work, x, y);
}
template <class T>
cublasStatus_t rot(cublasHandle_t handle, Vector<T> x, Vector<T> y, const T* cosine, const T* sine) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Factor<T> c(handle, cosine), s(handle, sine);
  const auto work = [=] {
    for (int i = 0; i < x.n; ++i) {
      const T before = x[i];
      x[i] = c * before + s * y[i];
      y[i] = c * y[i] - s * before;
    }
  };
  return submit(handle, work, x, y, c, s);
}

// y = alpha A x + beta y, where at(row, column) is A.
template <class T, class At, class... Used>
cublasStatus_t multiply(cublasHandle_t handle, const T* times, const T* keep, Vector<const T> x, Vector<T> y, At at,
                        const Used&... used) {
  const Factor<T> alpha(handle, times), beta(handle, keep);
  const auto work = [=] {
    for (int row = 0; row < y.n; ++row) {
      double sum = 0;
      for (int column = 0; column < x.n; ++column)
        sum += static_cast<double>(at(row, column)) * static_cast<double>(x[column]);
      const T kept = beta == T{} ? T{} : beta * y[row];  // what is there may be NaN
      y[row] = static_cast<T>(static_cast<double>(static_cast<T>(alpha)) * sum) + kept;
    }
  };
  return submit(handle, work, x, y, alpha, beta, used...);
}

template <class T>
cublasStatus_t gemv(cublasHandle_t handle, cublasOperation_t op, const T* alpha, Matrix<const T> A, const T* x,
                    int incx, const T* beta, T* y, int incy) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!A.is_wide_enough() || !incx || !incy) return CUBLAS_STATUS_INVALID_VALUE;
  const bool plain = op == CUBLAS_OP_N;
  const Vector<const T> from{x, plain ? A.columns : A.rows, incx};
  const Vector<T> to{y, plain ? A.rows : A.columns, incy};
  const auto at = [=](int row, int column) { return plain ? A(row, column) : A(column, row); };
  return multiply(handle, alpha, beta, from, to, at, A);
}
template <class T>
cublasStatus_t symv(cublasHandle_t handle, cublasFillMode_t fill, const T* alpha, Matrix<const T> A, Vector<const T> x,
                    const T* beta, Vector<T> y) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!A.is_wide_enough() || !x.inc || !y.inc) return CUBLAS_STATUS_INVALID_VALUE;
  const bool upper = is_upper(fill);
  const auto at = [=](int row, int column) { return (row <= column) == upper ? A(row, column) : A(column, row); };
  return multiply(handle, alpha, beta, x, y, at, A);
}

// A += alpha (x y' + y x' if both), in the part of it that is stored.
template <class T, class Stored>
cublasStatus_t update(cublasHandle_t handle, const T* times, Vector<const T> x, Vector<const T> y, Matrix<T> A,
                      bool both, Stored is_stored) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!A.is_wide_enough() || !x.inc || !y.inc) return CUBLAS_STATUS_INVALID_VALUE;
  const Factor<T> alpha(handle, times);
  const auto work = [=] {
    for (int column = 0; column < A.columns; ++column)
      for (int row = 0; row < A.rows; ++row)
        if (is_stored(row, column))
          A(row, column) += alpha * (both ? x[row] * y[column] + y[row] * x[column] : x[row] * y[column]);
  };
  return submit(handle, work, x, y, A, alpha);
}
template <class T>
cublasStatus_t update_triangle(cublasHandle_t handle, cublasFillMode_t fill, const T* alpha, Vector<const T> x,
                               Vector<const T> y, Matrix<T> A, bool both) {
  const bool upper = is_upper(fill);
  return update(handle, alpha, x, y, A, both,
                [=](int row, int column) { return row == column || (row < column) == upper; });
}

// x = op(A) x, or the x of which op(A) x is the given one.
template <class T>
cublasStatus_t triangle(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diagonal,
                        Matrix<const T> A, Vector<T> x, bool solve) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!A.is_wide_enough() || !x.inc) return CUBLAS_STATUS_INVALID_VALUE;
  const bool plain = op == CUBLAS_OP_N, upper = is_upper(fill) == plain, unit = diagonal == CUBLAS_DIAG_UNIT;
  const auto work = [=] {
    const auto at = [&](int row, int column) { return plain ? A(row, column) : A(column, row); };
    for (int i = 0; i < x.n; ++i) {  // in an order in which what a row needs is there, solved or not yet multiplied
      const int row = upper == solve ? x.n - 1 - i : i;
      double sum = 0;
      for (int column = upper ? row + 1 : 0; column < (upper ? x.n : row); ++column)
        sum += static_cast<double>(at(row, column)) * static_cast<double>(x[column]);
      const double own = unit ? 1 : static_cast<double>(at(row, row)), given = static_cast<double>(x[row]);
      x[row] = static_cast<T>(solve ? (given - sum) / own : own * given + sum);
    }
  };
  return submit(handle, work, A, x);
}

template <class T>
cublasStatus_t geam(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, const T* times_a,
                    Matrix<const T> A, const T* times_b, Matrix<const T> B, Matrix<T> C) {
  if (!is_known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (opA != CUBLAS_OP_N) std::swap(A.rows, A.columns);
  if (opB != CUBLAS_OP_N) std::swap(B.rows, B.columns);
  if (!A.is_wide_enough() || !B.is_wide_enough() || !C.is_wide_enough()) return CUBLAS_STATUS_INVALID_VALUE;
  const Factor<T> alpha(handle, times_a), beta(handle, times_b);
  if (!B.data && !beta.on_device && beta.value == T{}) B = A, opB = opA;
  const auto work = [=] {
    for (int column = 0; column < C.columns; ++column)
      for (int row = 0; row < C.rows; ++row) {
        const T a = opA == CUBLAS_OP_N ? A(row, column) : A(column, row);
        const T b = opB == CUBLAS_OP_N ? B(row, column) : B(column, row);
        C(row, column) = (alpha == T{} ? T{} : alpha * a) + (beta == T{} ? T{} : beta * b);
      }
  };
  return submit(handle, work, A, B, C, alpha, beta);
}

cublasStatus_t copy_2d(int rows, int columns, int size, const void* from, int lda, void* to, int ldb,
                       cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (rows < 0 || columns < 0 || size <= 0 || lda < std::max(1, rows) || ldb < std::max(1, rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (rows == 0 || columns == 0) return CUBLAS_STATUS_SUCCESS;
  const size_t width = static_cast<size_t>(rows) * static_cast<size_t>(size), element = static_cast<size_t>(size);
  const size_t from_pitch = static_cast<size_t>(lda) * element, to_pitch = static_cast<size_t>(ldb) * element;
  const size_t height = static_cast<size_t>(columns);
  const cudaError_t error = stream ? cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, *stream)
                                   : cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

}  // namespace

#define SIMT_LEVELS(L, l, T)                                                                                           \
  cublasStatus_t cublasI##l##amax(cublasHandle_t handle, int n, const T* x, int incx, int* result) {                   \
    return extreme<T>(handle, {x, n, incx}, result, true);                                                             \
  }                                                                                                                    \
  cublasStatus_t cublasI##l##amin(cublasHandle_t handle, int n, const T* x, int incx, int* result) {                   \
    return extreme<T>(handle, {x, n, incx}, result, false);                                                            \
  }                                                                                                                    \
  cublasStatus_t cublas##L##asum(cublasHandle_t handle, int n, const T* x, int incx, T* result) {                      \
    return asum<T>(handle, {x, n, incx}, result);                                                                      \
  }                                                                                                                    \
  cublasStatus_t cublas##L##nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* result) {                      \
    return nrm2<T>(handle, {x, n, incx}, result);                                                                      \
  }                                                                                                                    \
  cublasStatus_t cublas##L##dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y, int incy, T* result) { \
    return dot<T>(handle, {x, n, incx}, {y, n, incy}, result);                                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##L##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, T* y, int incy) { \
    return axpy<T>(handle, alpha, {x, n, incx}, {y, n, incy});                                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##L##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx) {                       \
    return scal<T>(handle, alpha, {x, n, incx});                                                                       \
  }                                                                                                                    \
  cublasStatus_t cublas##L##copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy) {                 \
    return copy<T>(handle, {x, n, incx}, {y, n, incy});                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##L##swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy) {                       \
    return swap<T>(handle, {x, n, incx}, {y, n, incy});                                                                \
  }                                                                                                                    \
  cublasStatus_t cublas##L##rot(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy, const T* c,              \
                                const T* s) {                                                                          \
    return rot<T>(handle, {x, n, incx}, {y, n, incy}, c, s);                                                           \
  }                                                                                                                    \
  cublasStatus_t cublas##L##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n, const T* alpha,            \
                                 const T* A, int lda, const T* x, int incx, const T* beta, T* y, int incy) {           \
    return gemv<T>(handle, op, alpha, {A, m, n, lda}, x, incx, beta, y, incy);                                         \
  }                                                                                                                    \
  cublasStatus_t cublas##L##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x, int incx, const T* y, \
                                int incy, T* A, int lda) {                                                             \
    return update<T>(handle, alpha, {x, m, incx}, {y, n, incy}, {A, m, n, lda}, false, [](int, int) { return true; }); \
  }                                                                                                                    \
  cublasStatus_t cublas##L##symv(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* A,      \
                                 int lda, const T* x, int incx, const T* beta, T* y, int incy) {                       \
    return symv<T>(handle, fill, alpha, {A, n, n, lda}, {x, n, incx}, beta, {y, n, incy});                             \
  }                                                                                                                    \
  cublasStatus_t cublas##L##syr(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,       \
                                int incx, T* A, int lda) {                                                             \
    return update_triangle<T>(handle, fill, alpha, {x, n, incx}, {x, n, incx}, {A, n, n, lda}, false);                 \
  }                                                                                                                    \
  cublasStatus_t cublas##L##syr2(cublasHandle_t handle, cublasFillMode_t fill, int n, const T* alpha, const T* x,      \
                                 int incx, const T* y, int incy, T* A, int lda) {                                      \
    return update_triangle<T>(handle, fill, alpha, {x, n, incx}, {y, n, incy}, {A, n, n, lda}, true);                  \
  }                                                                                                                    \
  cublasStatus_t cublas##L##trmv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,                   \
                                 cublasDiagType_t diagonal, int n, const T* A, int lda, T* x, int incx) {              \
    return triangle<T>(handle, fill, op, diagonal, {A, n, n, lda}, {x, n, incx}, false);                               \
  }                                                                                                                    \
  cublasStatus_t cublas##L##trsv(cublasHandle_t handle, cublasFillMode_t fill, cublasOperation_t op,                   \
                                 cublasDiagType_t diagonal, int n, const T* A, int lda, T* x, int incx) {              \
    return triangle<T>(handle, fill, op, diagonal, {A, n, n, lda}, {x, n, incx}, true);                                \
  }                                                                                                                    \
  cublasStatus_t cublas##L##geam(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n,    \
                                 const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C,        \
                                 int ldc) {                                                                            \
    return geam<T>(handle, opA, opB, alpha, {A, m, n, lda}, beta, {B, m, n, ldb}, {C, m, n, ldc});                     \
  }
SIMT_LEVELS(S, s, float)
SIMT_LEVELS(D, d, double)
#undef SIMT_LEVELS

cublasStatus_t cublasSetVector(int n, int elementSize, const void* host, int incx, void* device, int incy) {
  return copy_2d(1, n, elementSize, host, incx, device, incy, cudaMemcpyHostToDevice, nullptr);
}
cublasStatus_t cublasGetVector(int n, int elementSize, const void* device, int incx, void* host, int incy) {
  return copy_2d(1, n, elementSize, device, incx, host, incy, cudaMemcpyDeviceToHost, nullptr);
}
cublasStatus_t cublasSetMatrix(int rows, int columns, int elementSize, const void* host, int lda, void* device,
                               int ldb) {
  return copy_2d(rows, columns, elementSize, host, lda, device, ldb, cudaMemcpyHostToDevice, nullptr);
}
cublasStatus_t cublasGetMatrix(int rows, int columns, int elementSize, const void* device, int lda, void* host,
                               int ldb) {
  return copy_2d(rows, columns, elementSize, device, lda, host, ldb, cudaMemcpyDeviceToHost, nullptr);
}
cublasStatus_t cublasSetVectorAsync(int n, int elementSize, const void* host, int incx, void* device, int incy,
                                    cudaStream_t stream) {
  return copy_2d(1, n, elementSize, host, incx, device, incy, cudaMemcpyHostToDevice, &stream);
}
cublasStatus_t cublasGetVectorAsync(int n, int elementSize, const void* device, int incx, void* host, int incy,
                                    cudaStream_t stream) {
  return copy_2d(1, n, elementSize, device, incx, host, incy, cudaMemcpyDeviceToHost, &stream);
}
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int elementSize, const void* host, int lda, void* device,
                                    int ldb, cudaStream_t stream) {
  return copy_2d(rows, columns, elementSize, host, lda, device, ldb, cudaMemcpyHostToDevice, &stream);
}
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int elementSize, const void* device, int lda, void* host,
                                    int ldb, cudaStream_t stream) {
  return copy_2d(rows, columns, elementSize, device, lda, host, ldb, cudaMemcpyDeviceToHost, &stream);
}
