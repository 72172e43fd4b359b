// cuBLAS's products on a BLAS. The test brings its own, so that it needs none on this machine.
#include "testing.h"

#include <cublasLt.h>
#include <cublas_v2.h>

#include <cstdio>
#include <fstream>

// A library with the two functions, as Fortran has them.
void make_blas() {
  static bool made = false;
  if (made) return;
  made = true;
  static const struct Files {
    std::string stem = "/tmp/simt_blas_" + std::to_string(getpid());
    ~Files() {
      for (const char* end : {".cpp", ".so"}) std::remove((stem + end).c_str());
    }
  } files;
  std::ofstream(files.stem + ".cpp") << R"(
    template <class T> void gemm(const char* oa, const char* ob, const int* m, const int* n, const int* k, const T* alpha,
                                 const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {
      for (int j = 0; j < *n; ++j) for (int i = 0; i < *m; ++i) {
        T sum = 0;
        for (int l = 0; l < *k; ++l) sum += (*oa == 'N' ? a[l * *lda + i] : a[i * *lda + l]) *
                                            (*ob == 'N' ? b[j * *ldb + l] : b[l * *ldb + j]);
        T& out = c[j * *ldc + i];
        out = *alpha * sum + (*beta == 0 ? 0 : *beta * out);
      }
    }
    #define GEMM(name, T) extern "C" void name(const char* oa, const char* ob, const int* m, const int* n, const int* k, \
        const T* alpha, const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) { \
      gemm(oa, ob, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc); }
    GEMM(sgemm_, float) GEMM(dgemm_, double))";
  const std::string library = files.stem + ".so";
  REQUIRE(std::system(("g++ -shared -fPIC -o " + library + " " + files.stem + ".cpp").c_str()) == 0);
  setenv("SIMT_BLAS", library.c_str(), 1);
}

struct Handle {
  cublasHandle_t handle = nullptr;
  Handle() {
    make_blas();
    REQUIRE(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  }
  ~Handle() { CHECK(cublasDestroy(handle) == CUBLAS_STATUS_SUCCESS); }
  operator cublasHandle_t() const { return handle; }
};

constexpr int kM = 5, kN = 4, kK = 3, kPad = 2;

template <class T>
std::vector<T> numbers(int count) {
  std::vector<T> made;
  for (int i = 0; i < count; ++i) made.push_back(T(float(i * 7 % 11 - 5)));
  return made;
}

template <class T, class Sum, class Scale>
void check(cudaDataType type, cudaDataType sum_type, cublasComputeType_t compute, bool transposed) {
  const Handle handle;
  const int lda = (transposed ? kK : kM) + kPad, ldb = (transposed ? kN : kK) + kPad, ldc = kM + kPad, batches = 2;
  const int size_a = lda * (transposed ? kM : kK), size_b = ldb * (transposed ? kK : kN), size_c = ldc * kN;
  const auto a = numbers<T>(size_a * batches), b = numbers<T>(size_b * batches);
  const auto c = numbers<Sum>(size_c * batches);
  const Device<T> device_a(a), device_b(b);
  Device<Sum> device_c(c);
  const Scale alpha = Scale(2.f), beta = Scale(3.f);
  const auto op = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  REQUIRE(cublasGemmStridedBatchedEx(handle, op, op, kM, kN, kK, &alpha, device_a.data, type, lda, size_a,
                                     device_b.data, type, ldb, size_b, &beta, device_c.data, sum_type, ldc, size_c,
                                     batches, compute, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
  const auto got = device_c.host();
  int wrong = 0;
  for (int batch = 0; batch < batches; ++batch)
    for (int j = 0; j < kN; ++j)
      for (int i = 0; i < ldc; ++i) {
        const auto at = [&](const std::vector<T>& x, int size, int k) { return float(x[size_t(batch * size + k)]); };
        const size_t here = size_t(batch * size_c + j * ldc + i);
        float expected = float(c[here]);  // what lies between the columns stays
        if (i < kM) {
          float sum = 0;
          for (int k = 0; k < kK; ++k)
            sum += at(a, size_a, transposed ? i * lda + k : k * lda + i) *
                   at(b, size_b, transposed ? k * ldb + j : j * ldb + k);
          expected = 2 * sum + 3 * expected;
        }
        wrong += float(got[here]) != expected;
      }
  CAPTURE(int(type));
  CAPTURE(transposed);
  CHECK(wrong == 0);
}

TEST_CASE("products of each type") {
  for (bool transposed : {false, true}) {
    check<float, float, float>(CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, transposed);
    check<double, double, double>(CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, transposed);
    check<__half, __half, __half>(CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, transposed);
    check<__half, float, float>(CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, transposed);
    check<__nv_bfloat16, __nv_bfloat16, float>(CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, transposed);
    check<signed char, int, int>(CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, transposed);
  }
}

TEST_CASE("sgemm in a stream, in a graph, and with its factors in device memory") {
  const Handle handle;
  const std::vector<float> factors = {1, 0};
  const Device<float> a(numbers<float>(6)), b(numbers<float>(6)), scale(factors);
  Device<float> c(4);
  cudaStream_t stream;
  REQUIRE(cudaStreamCreate(&stream) == cudaSuccess);
  REQUIRE(cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE) == CUBLAS_STATUS_SUCCESS);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  REQUIRE(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 3, scale.data, a.data, 2, b.data, 3, scale.data + 1,
                      c.data, 2) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(c.host() == std::vector<float>(4, 0));
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  const auto x = numbers<float>(6);
  std::vector<float> expected(4);
  for (size_t j = 0; j < 2; ++j)
    for (size_t i = 0; i < 2; ++i)
      for (size_t k = 0; k < 3; ++k) expected[j * 2 + i] += x[k * 2 + i] * x[j * 3 + k];
  CHECK(c.host() == expected);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST_CASE("what is refused") {
  const Handle handle;
  const float one = 1;
  Device<float> data(16);
  const auto multiply = [&](cublasHandle_t with, int lda, const float* a) {
    return cublasSgemm(with, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, a, lda, data.data, 4, &one, data.data, 4);
  };
  CHECK(multiply(nullptr, 4, data.data) == CUBLAS_STATUS_NOT_INITIALIZED);
  CHECK(multiply(handle, 3, data.data) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(multiply(handle, 4, &one) == CUBLAS_STATUS_INVALID_VALUE);  // host memory
  const std::string said = stderr_of([&] {
    CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, data.data, CUDA_R_8F_E4M3, 4, data.data,
                       CUDA_R_8F_E4M3, 4, &one, data.data, CUDA_R_32F, 4, CUBLAS_COMPUTE_32F,
                       CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
  });
  CHECK(contains(said, "no product of matrices of these types"));
  CHECK(std::string(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED)) == "CUBLAS_STATUS_NOT_SUPPORTED");
  cudaGetLastError();
}

// D = epilogue(2 op(A) op(B) + 3 C) against plain loops, by columns and by rows; A is k x m, and transposed.
template <class T>
void check_lt(cudaDataType type, cublasLtOrder_t order, int epilogue) {
  make_blas();
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t desc;
  cublasLtMatrixLayout_t a, b, c;
  cublasLtMatmulPreference_t preference;
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  REQUIRE(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F) == CUBLAS_STATUS_SUCCESS);
  const bool by_columns = order == CUBLASLT_ORDER_COL;
  const auto layout = [&](cublasLtMatrixLayout_t* made, int rows, int columns) {
    REQUIRE(cublasLtMatrixLayoutCreate(made, type, rows, columns, by_columns ? rows : columns) ==
            CUBLAS_STATUS_SUCCESS);
    REQUIRE(cublasLtMatrixLayoutSetAttribute(*made, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof(order)) ==
            CUBLAS_STATUS_SUCCESS);
  };
  layout(&a, kK, kM), layout(&b, kK, kN), layout(&c, kM, kN);
  const cublasOperation_t transposed = CUBLAS_OP_T;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
  const auto ha = numbers<T>(kK * kM), hb = numbers<T>(kK * kN), hc = numbers<T>(kM * kN), hbias = numbers<T>(kM);
  Device<T> da(ha), db(hb), dc(hc), dd(kM * kN), bias(hbias);
  const cublasLtEpilogue_t chosen = cublasLtEpilogue_t(epilogue);
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &chosen, sizeof(chosen));
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.data, sizeof(void*));
  REQUIRE(cublasLtMatmulPreferenceCreate(&preference) == CUBLAS_STATUS_SUCCESS);
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  CHECK(cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, c, preference, 1, &found, &count) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(count == 1);
  const float alpha = 2, beta = 3;
  CHECK(cublasLtMatmul(handle, desc, &alpha, da.data, a, db.data, b, &beta, dc.data, c, dd.data, c, &found.algo,
                       nullptr, 0, nullptr) == CUBLAS_STATUS_SUCCESS);
  const auto got = dd.host();
  const auto at = [&](int rows, int columns, int row, int column) {
    return size_t(by_columns ? column * rows + row : row * columns + column);
  };
  int wrong = 0;
  for (int i = 0; i < kM; ++i)
    for (int j = 0; j < kN; ++j) {
      float sum = 0;
      for (int l = 0; l < kK; ++l) sum += float(ha[at(kK, kM, l, i)]) * float(hb[at(kK, kN, l, j)]);
      float x = 2 * sum + 3 * float(hc[at(kM, kN, i, j)]);
      if (epilogue & CUBLASLT_EPILOGUE_BIAS) x += float(hbias[size_t(i)]);
      if (epilogue & CUBLASLT_EPILOGUE_RELU) x = x > 0 ? x : 0;
      if (epilogue & CUBLASLT_EPILOGUE_GELU) x *= 0.5f * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
      wrong += std::abs(float(got[at(kM, kN, i, j)]) - x) > 1e-5f * (1 + std::abs(x));
    }
  CHECK(wrong == 0);
  const void* scale = bias.data;
  cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale, sizeof(scale));
  CHECK(cublasLtMatmul(handle, desc, &alpha, da.data, a, db.data, b, &beta, dc.data, c, dd.data, c, nullptr, nullptr, 0,
                       nullptr) == CUBLAS_STATUS_NOT_SUPPORTED);
  for (auto made : {a, b, c}) cublasLtMatrixLayoutDestroy(made);
  cublasLtMatmulPreferenceDestroy(preference);
  cublasLtMatmulDescDestroy(desc);
  cublasLtDestroy(handle);
}
TEST_CASE("cuBLASLt") {
  check_lt<float>(CUDA_R_32F, CUBLASLT_ORDER_COL, CUBLASLT_EPILOGUE_DEFAULT);
  check_lt<float>(CUDA_R_32F, CUBLASLT_ORDER_ROW, CUBLASLT_EPILOGUE_RELU_BIAS);
  check_lt<float>(CUDA_R_32F, CUBLASLT_ORDER_COL, CUBLASLT_EPILOGUE_GELU_BIAS);
  check_lt<__half>(CUDA_R_16F, CUBLASLT_ORDER_COL, CUBLASLT_EPILOGUE_BIAS);
}

TEST_CASE("the type of the sums in place of a compute type") {
  const Handle handle;
  const Device<float> one(std::vector<float>{3}), other(std::vector<float>{5});
  Device<float> product(1);
  const float alpha = 2, beta = 0;
  CHECK(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, one.data, CUDA_R_32F, 1, other.data, CUDA_R_32F,
                     1, &beta, product.data, CUDA_R_32F, 1, CUDA_R_32F, CUBLAS_GEMM_DFALT) == CUBLAS_STATUS_SUCCESS);
  CHECK(product.host()[0] == 30);
}
