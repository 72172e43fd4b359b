#include "typed.cuh"

template cudaError_t q4_abi::multiply<__nv_bfloat16, __nv_bfloat16>(const Product& product);
