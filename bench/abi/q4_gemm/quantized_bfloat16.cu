#include "typed.cuh"

template cudaError_t q4_abi::multiply<q4_gemm::Quantized, __nv_bfloat16>(const Product& product);
