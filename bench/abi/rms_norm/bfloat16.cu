#include "typed.cuh"

C_ABI_OF(__nv_bfloat16)
