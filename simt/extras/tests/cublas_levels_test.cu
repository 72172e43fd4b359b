// cuBLAS's levels 1 and 2 against sums over dense arrays, with steps, pads and both pointer modes.
#include "testing.h"

#include <cublas_v2.h>

#include <cmath>

struct Handle {
  cublasHandle_t handle = nullptr;
  Handle() { REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS); }
  ~Handle() { cublasDestroy(handle); }
  operator cublasHandle_t() const { return handle; }
};

constexpr int kRows = 4, kColumns = 3, kLeading = 6;

std::vector<float> numbers(int count, int seed) {
  std::vector<float> made;
  for (int i = 0; i < count; ++i) made.push_back(float((i + seed) * 7 % 11 - 5));
  return made;
}

TEST_CASE("vectors") {
  const Handle handle;
  const std::vector<float> hx = numbers(9, 0), hy = numbers(9, 4);  // x: 5 elements, 2 apart; y: the last ones first
  const auto x_at = [&](int i) { return hx[size_t(2 * i)]; };
  const auto y_at = [](const std::vector<float>& y, int i) { return y[size_t(4 - i)]; };
  Device<float> x(hx), y(hy);
  float dot = 0, sum = 0, norm = 0, expected_dot = 0, expected_sum = 0, expected_norm = 0;
  for (int i = 0; i < 5; ++i) {
    expected_dot += x_at(i) * y_at(hy, i);
    expected_sum += std::fabs(x_at(i));
    expected_norm += x_at(i) * x_at(i);
  }
  CHECK(cublasSdot(handle, 5, x.data, 2, y.data, -1, &dot) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSasum(handle, 5, x.data, 2, &sum) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSnrm2(handle, 5, x.data, 2, &norm) == CUBLAS_STATUS_SUCCESS);
  CHECK(dot == expected_dot);
  CHECK(sum == expected_sum);
  CHECK(norm == doctest::Approx(std::sqrt(expected_norm)));

  const float factor = 3;
  CHECK(cublasSaxpy(handle, 5, &factor, x.data, 2, y.data, -1) == CUBLAS_STATUS_SUCCESS);
  auto got = y.host();
  for (int i = 0; i < 5; ++i) CHECK(y_at(got, i) == y_at(hy, i) + 3 * x_at(i));
  CHECK(got[5] == hy[5]);
  CHECK(cublasSswap(handle, 5, x.data, 1, y.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSscal(handle, 5, &factor, y.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(x.host()[4] == got[4]);
  CHECK(y.host()[4] == 3 * hx[4]);
  CHECK(cublasScopy(handle, 5, x.data, 1, y.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(y.host()[4] == got[4]);
  const float cosine = 0, sine = 1;
  CHECK(cublasSscal(handle, 5, &factor, y.data, 1) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSrot(handle, 5, x.data, 1, y.data, 1, &cosine, &sine) == CUBLAS_STATUS_SUCCESS);
  CHECK(x.host()[0] == 3 * got[0]);
  CHECK(y.host()[0] == -got[0]);

  const Device<double> d(std::vector<double>{1, -7, 0.5, 7});
  int greatest = 0, least = 0;
  CHECK(cublasIdamax(handle, 4, d.data, 1, &greatest) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasIdamin(handle, 4, d.data, 1, &least) == CUBLAS_STATUS_SUCCESS);
  CHECK(greatest == 2);  // counted from one, and the first of equals
  CHECK(least == 3);

  Device<double> results(1);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  CHECK(cublasDdot(handle, 4, d.data, 1, d.data, 1, results.data) == CUBLAS_STATUS_SUCCESS);
  CHECK(results.host()[0] == 99.25);
  double on_host = 0;
  CHECK(cublasDdot(handle, 4, d.data, 1, d.data, 1, &on_host) == CUBLAS_STATUS_INVALID_VALUE);
  cudaGetLastError();
}

TEST_CASE("a matrix and vectors") {
  const Handle handle;
  const std::vector<float> a = numbers(kLeading * kColumns, 1), hx = numbers(4, 2), hy = numbers(4, 5);
  const auto at = [&](int row, int column) { return a[size_t(column * kLeading + row)]; };
  const float alpha = 2, beta = -1, none = 0;
  const Device<float> x(hx);
  Device<float> A(a);
  for (const bool plain : {true, false}) {
    const int results = plain ? kRows : kColumns, sums = plain ? kColumns : kRows;
    Device<float> y(hy), fresh(std::vector<float>(4, NAN));
    const auto op = plain ? CUBLAS_OP_N : CUBLAS_OP_T;
    CHECK(cublasSgemv(handle, op, kRows, kColumns, &alpha, A.data, kLeading, x.data, 1, &beta, y.data, 1) == 0);
    CHECK(cublasSgemv(handle, op, kRows, kColumns, &alpha, A.data, kLeading, x.data, 1, &none, fresh.data, 1) == 0);
    const auto got = y.host(), got_fresh = fresh.host();
    for (int i = 0; i < results; ++i) {
      float sum = 0;
      for (int k = 0; k < sums; ++k) sum += (plain ? at(i, k) : at(k, i)) * hx[size_t(k)];
      CHECK(got[size_t(i)] == 2 * sum - hy[size_t(i)]);
      CHECK(got_fresh[size_t(i)] == 2 * sum);  // beta is 0: what was there does not count
    }
  }
  const Device<float> y(hy);
  CHECK(cublasSger(handle, kRows, kColumns, &alpha, x.data, 1, y.data, 1, A.data, kLeading) == 0);
  auto got = A.host();
  for (int column = 0; column < kColumns; ++column)
    for (int row = 0; row < kLeading; ++row) {
      const float added = row < kRows ? 2 * hx[size_t(row)] * hy[size_t(column)] : 0;
      CHECK(got[size_t(column * kLeading + row)] == at(row, column) + added);
    }
  Device<float> turned(size_t(kRows * kColumns));
  CHECK(cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_N, kColumns, kRows, &alpha, A.data, kLeading, &none, nullptr,
                    kColumns, turned.data, kColumns) == 0);
  CHECK(turned.host()[1] == 2 * got[size_t(kLeading)]);
}

TEST_CASE("triangles and symmetric matrices") {
  const Handle handle;
  constexpr int n = 3, leading = 5;
  std::vector<double> a(leading * n), hx = {2, -1, 4}, hy = {1, 3, -2};
  for (size_t i = 0; i < a.size(); ++i) a[i] = double(i % 7) + 1;
  const double alpha = 2, beta = 1;
  for (const auto fill : {CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER}) {
    const bool upper = fill == CUBLAS_FILL_MODE_UPPER;
    const auto stored = [&](int row, int column) { return row == column || (row < column) == upper; };
    const auto at = [&](int row, int column) { return a[size_t(column * leading + row)]; };
    const Device<double> x(hx);
    Device<double> A(a), y(hy);
    CHECK(cublasDsymv(handle, fill, n, &alpha, A.data, leading, x.data, 1, &beta, y.data, 1) == 0);
    for (int i = 0; i < n; ++i) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += (stored(i, k) ? at(i, k) : at(k, i)) * hx[size_t(k)];
      CHECK(y.host()[size_t(i)] == 2 * sum + hy[size_t(i)]);
    }
    for (const auto op : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (const auto diagonal : {CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT}) {
        Device<double> v(hx);
        CHECK(cublasDtrmv(handle, fill, op, diagonal, n, A.data, leading, v.data, 1) == 0);
        const auto product = v.host();
        for (int i = 0; i < n; ++i) {
          double sum = 0;
          for (int k = 0; k < n; ++k) {
            const int row = op == CUBLAS_OP_N ? i : k, column = op == CUBLAS_OP_N ? k : i;
            const double own = row == column && diagonal == CUBLAS_DIAG_UNIT ? 1 : at(row, column);
            if (stored(row, column)) sum += own * hx[size_t(k)];
          }
          CHECK(product[size_t(i)] == sum);
        }
        CHECK(cublasDtrsv(handle, fill, op, diagonal, n, A.data, leading, v.data, 1) == 0);
        for (size_t i = 0; i < hx.size(); ++i) CHECK(v.host()[i] == doctest::Approx(hx[i]));
      }
    const Device<double> second(hy);
    CHECK(cublasDsyr(handle, fill, n, &alpha, x.data, 1, A.data, leading) == 0);
    CHECK(cublasDsyr2(handle, fill, n, &alpha, x.data, 1, second.data, 1, A.data, leading) == 0);
    const auto got = A.host();
    for (int row = 0; row < n; ++row)
      for (int column = 0; column < n; ++column) {
        const double xr = hx[size_t(row)], xc = hx[size_t(column)], yr = hy[size_t(row)], yc = hy[size_t(column)];
        const double added = stored(row, column) ? 2 * xr * xc + 2 * (xr * yc + yr * xc) : 0;
        CHECK(got[size_t(column * leading + row)] == at(row, column) + added);
      }
  }
}

TEST_CASE("copies of vectors and matrices, and refusals") {
  const std::vector<float> host = numbers(12, 3);
  Device<float> device(12, 0);
  CHECK(cublasSetVector(3, 4, host.data(), 2, device.data, 3) == CUBLAS_STATUS_SUCCESS);
  const auto vector = device.host();
  for (size_t i = 0; i < 3; ++i) CHECK(vector[3 * i] == host[2 * i]);
  CHECK(vector[1] == 0);
  CHECK(cublasSetMatrix(2, 3, 4, host.data(), 4, device.data, 3) == CUBLAS_STATUS_SUCCESS);
  std::vector<float> back(6);
  CHECK(cublasGetMatrix(2, 3, 4, device.data, 3, back.data(), 2) == CUBLAS_STATUS_SUCCESS);
  for (size_t column = 0; column < 3; ++column)
    for (size_t row = 0; row < 2; ++row) CHECK(back[column * 2 + row] == host[column * 4 + row]);
  CHECK(cublasGetVectorAsync(3, 4, device.data, 1, back.data(), 1, nullptr) == CUBLAS_STATUS_SUCCESS);
  CHECK(cublasSetMatrix(4, 3, 4, host.data(), 3, device.data, 4) == CUBLAS_STATUS_INVALID_VALUE);
  const Handle handle;
  const float one = 1;
  float on_host = 0;
  CHECK(cublasSscal(nullptr, 1, &one, device.data, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(cublasSscal(handle, 1, &one, &on_host, 1) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasSgemv(handle, CUBLAS_OP_N, 4, 3, &one, device.data, 3, device.data, 1, &one, device.data, 1) ==
        CUBLAS_STATUS_INVALID_VALUE);
  cudaGetLastError();
}
