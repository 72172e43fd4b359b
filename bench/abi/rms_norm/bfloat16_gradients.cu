#include "typed.cuh"

C_ABI_OF_GRADIENTS(__nv_bfloat16)
