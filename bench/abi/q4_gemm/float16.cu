#include "typed.cuh"

template cudaError_t q4_abi::multiply<__half, __half>(const Product& product);
