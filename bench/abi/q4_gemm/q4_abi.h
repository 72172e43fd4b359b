// What q4_abi.cu calls: products with x and y of one type, or with x quantized. Each is compiled in a file of its own,
// so that they compile side by side.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <q4_gemm/arguments.cuh>

namespace q4_abi {

struct Product {
  bool repacked, rounded;
  const void *weights, *x;
  void* y;
  int64_t m, n, k;
  q4_gemm::Options options;
  cudaStream_t stream;
};

// X is a type of elements, or q4_gemm::Quantized.
template <class X, class Y>
cudaError_t multiply(const Product& product);

}  // namespace q4_abi
