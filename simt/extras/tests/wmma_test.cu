// nvcuda::wmma against products made one after the other, for each shape, type and order of elements.
#include "testing.h"

#include <mma.h>

using namespace nvcuda;

template <class T>
using Stored =
    typename wmma::fragment<wmma::matrix_a, std::is_same_v<T, double> ? 8 : 16, std::is_same_v<T, double> ? 8 : 16,
                            std::is_same_v<T, double>                  ? 4
                            : std::is_same_v<T, wmma::precision::tf32> ? 8
                                                                       : 16,
                            T, wmma::row_major>::storage_element_type;

template <int m, int n, int k, class T, class OrderA, class OrderB, class Sum>
__global__ void multiply(const Stored<T>* a, const Stored<T>* b, const Sum* c, Sum* d, unsigned lda, unsigned ldb) {
  wmma::fragment<wmma::matrix_a, m, n, k, T, OrderA> fa;
  wmma::fragment<wmma::matrix_b, m, n, k, T, OrderB> fb;
  wmma::fragment<wmma::accumulator, m, n, k, Sum> sums;
  wmma::load_matrix_sync(fa, a, lda);
  wmma::load_matrix_sync(fb, b, ldb);
  wmma::load_matrix_sync(sums, c, n, wmma::mem_row_major);
  wmma::mma_sync(sums, fa, fb, sums);
  for (int i = 0; i < sums.num_elements; ++i) sums.x[i] = sums.x[i] + sums.x[i];
  wmma::store_matrix_sync(d, sums, m, wmma::mem_col_major);
}

template <int m, int n, int k, class T, class OrderA, class OrderB, class Sum>
void check() {
  constexpr bool kRowsA = std::is_same_v<OrderA, wmma::row_major>, kRowsB = std::is_same_v<OrderB, wmma::row_major>;
  const unsigned lda = (kRowsA ? k : m) + 8, ldb = (kRowsB ? n : k) + 8;
  std::vector<Stored<T>> a(lda * (kRowsA ? m : k)), b(ldb * (kRowsB ? k : n));
  std::vector<Sum> c(m * n);
  constexpr int kLeast = std::is_same_v<T, unsigned char> ? 0 : -3;
  const auto at = [](size_t i, size_t j, int step) { return int((i * 5 + j * 3) * size_t(step) % 7) + kLeast; };
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < k; ++j) a[kRowsA ? i * lda + j : j * lda + i] = Stored<T>(float(at(i, j, 1)));
  for (size_t i = 0; i < k; ++i)
    for (size_t j = 0; j < n; ++j) b[kRowsB ? i * ldb + j : j * ldb + i] = Stored<T>(float(at(i, j, 2)));
  for (size_t i = 0; i < m * n; ++i) c[i] = Sum(float(i % 5));
  const Device<Stored<T>> device_a(a), device_b(b);
  const Device<Sum> device_c(c);
  Device<Sum> d(m * n);
  multiply<m, n, k, T, OrderA, OrderB><<<1, 32>>>(device_a.data, device_b.data, device_c.data, d.data, lda, ldb);
  const auto got = d.host();
  int wrong = 0;
  for (size_t i = 0; i < m; ++i)
    for (size_t j = 0; j < n; ++j) {
      int sum = int((i * n + j) % 5);
      for (size_t l = 0; l < k; ++l) sum += at(i, l, 1) * at(l, j, 2);
      wrong += float(got[j * m + i]) != float(2 * sum);
    }
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CHECK(wrong == 0);
}

TEST_CASE("products of fragments") {
  using wmma::col_major, wmma::row_major;
  check<16, 16, 16, __half, row_major, col_major, float>();
  check<16, 16, 16, __half, col_major, row_major, __half>();
  check<32, 8, 16, __half, row_major, row_major, float>();
  check<8, 32, 16, __nv_bfloat16, col_major, col_major, float>();
  check<16, 16, 8, wmma::precision::tf32, row_major, row_major, float>();
  check<16, 16, 16, signed char, row_major, col_major, int>();
  check<16, 16, 16, unsigned char, col_major, row_major, int>();
  check<8, 8, 4, double, row_major, col_major, double>();
}

__global__ void fill(float* out, float value) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::fill_fragment(f, wmma::__float_to_tf32(value));
  wmma::store_matrix_sync(out, f, 16, wmma::mem_row_major);
}
TEST_CASE("a fragment is filled, and a float loses what tf32 does not keep") {
  Device<float> out(256);
  fill<<<1, 32>>>(out.data, 1 + 0x1p-10f + 0x1p-12f);
  CHECK(out.host() == std::vector<float>(256, 1 + 0x1p-10f));
}
