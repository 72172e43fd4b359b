// The C++ class of this header (nvcuda::experimental::awbarrier) is absent: use cuda::barrier from <cuda/barrier>.
#pragma once
#include "cuda_awbarrier_primitives.h"
