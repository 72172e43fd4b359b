// Outputs of another type than x's.
#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, void, bf16, float> bf16_to_float;
static const Added<float, void, float, bf16> float_to_bf16;
static const Added<float, void, half, half> float_to_half;
static const Added<half, half, bf16, float> add_to_float;
