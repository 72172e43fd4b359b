#include "typed.cuh"

C_ABI_OF_GRADIENTS(__half)
