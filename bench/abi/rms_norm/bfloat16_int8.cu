#include "typed.cuh"

C_ABI_OF_CODES(__nv_bfloat16, int8_t)
