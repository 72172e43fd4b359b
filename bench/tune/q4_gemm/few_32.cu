#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<16, 2, 2, 4, 32, 1>, F<4, 2, 4, 6, 32, 2>> candidates;
