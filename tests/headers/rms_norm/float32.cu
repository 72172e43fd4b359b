#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<float, void, float, float> forward;
static const Added<float, float, float, float> fused_add;
