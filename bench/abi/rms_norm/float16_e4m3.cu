#include "typed.cuh"

C_ABI_OF_CODES(__half, __nv_fp8_e4m3)
