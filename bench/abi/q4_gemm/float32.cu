#include "typed.cuh"

template cudaError_t q4_abi::multiply<float, float>(const Product& product);
