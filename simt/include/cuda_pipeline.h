// The C++ class of this header (nvcuda::experimental::pipeline) is absent: use cuda::pipeline from <cuda/pipeline>.
#pragma once
#include "cuda_pipeline_primitives.h"
