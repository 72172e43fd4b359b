#include "typed.cuh"

C_ABI_OF_CODES(__half, int8_t)
