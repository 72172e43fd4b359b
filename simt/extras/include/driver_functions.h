// CUDA programs include this by name; what it declares is in cuda_runtime.h.
#pragma once
#include "cuda_runtime.h"
