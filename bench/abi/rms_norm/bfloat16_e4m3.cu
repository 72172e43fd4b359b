#include "typed.cuh"

C_ABI_OF_CODES(__nv_bfloat16, __nv_fp8_e4m3)
