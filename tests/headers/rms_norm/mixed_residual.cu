// Residuals of another type than x's.
#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, float, bf16, bf16> wide;
static const Added<float, bf16, float, float> narrow;
static const Added<half, bf16, half, half> other;
