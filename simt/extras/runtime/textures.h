// CUDA arrays, for copies.
#pragma once
#include "cuda_runtime_api.h"

namespace simt {

// Where an array lies, its rows without gaps, and the bytes of an element; false for what is no array.
bool find_array(cudaArray_const_t array, cudaPitchedPtr& place, size_t& element);
void reset_arrays();  // cudaDeviceReset has freed their memory

}  // namespace simt
