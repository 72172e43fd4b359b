// Four tensors of which each has another type than the one before.
#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, float, half, float> all_different;
