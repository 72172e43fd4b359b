// The production header, include/rms_norm, for the types of this ladder. It is compiled in one file of a program.
#pragma once
#include <cuda_runtime_api.h>

#include "common/types.h"

namespace ladder::inference {

// x and y have one type. Throws if the header refuses.
void production_norm(Type x_type, Type weight_type, const void* x, const void* weight, void* y, int64_t rows,
                     int64_t cols, float eps, bool dependent_launch, cudaStream_t stream);

}  // namespace ladder::inference
