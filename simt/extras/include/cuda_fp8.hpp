// CUDA splits its header in two; here the first half is the whole.
#pragma once
#include "cuda_fp8.h"
