// A product of include/q4_gemm without the types of its elements: q4.cu makes it, and an instance carries it out.
#pragma once
#include <q4_gemm/q4_gemm.cuh>

#include "types.h"

namespace rms_norm_binding {

struct Product {
  const void *packed, *x, *bias;
  bool is_quantized;  // x
  void* y;
  int64_t m, n, k;
  q4_gemm::Options options;
};
// Calls the header, and if it refuses the call, says why.
using ProductInstance = cudaError_t (*)(const Product&, cudaStream_t, const char** refusal);

// Where the instance stands whose y has this type, and so have a bias, and an x that is not quantized.
ProductInstance& product_instance(Type type);

}  // namespace rms_norm_binding
