// Tensors of which each has another type than the one before.
#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, float, half, float> with_residual;
static const Added<half, void, float, bf16> without;
