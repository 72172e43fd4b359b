// The production header's norm that ends in float8, for float16.
#pragma once
#include <cuda_fp8.h>
#include <cuda_runtime_api.h>

#include <cstdint>

namespace ladder::inference {

// x and weight are float16; q and a scale of each row are written, by a dependent launch. Throws if the header refuses.
void production_norm_to_float8(const void* x, const void* weight, __nv_fp8_e4m3* q, float* scales, int64_t rows,
                               int64_t cols, float eps, cudaStream_t stream);

}  // namespace ladder::inference
