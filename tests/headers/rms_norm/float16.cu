#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<half, void, half, half> forward;
static const Added<half, half, half, half> fused_add;
