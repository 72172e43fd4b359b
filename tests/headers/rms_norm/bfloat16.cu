#include "tests/headers/rms_norm/instance.cuh"
using namespace header_test;

static const Added<bf16, void, bf16, bf16> forward;
static const Added<bf16, bf16, bf16, bf16> fused_add;
