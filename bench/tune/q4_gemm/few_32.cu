#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<16, 2, 2, 4, 32, 1>, F<4, 2, 4, 6, 32, 2>> candidates;
