// Weights of another type than x's.
#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, void, float, bf16> bf16_float;
static const Added<half, void, float, half> half_float;
static const Added<float, void, bf16, float> float_bf16;
static const Added<half, void, bf16, half> half_bf16;
static const Added<bf16, bf16, float, bf16> bf16_float_add;
