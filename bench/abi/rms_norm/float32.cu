#include "typed.cuh"

C_ABI_OF(float)
