#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<2, 16, 3, 8, 1>, F<2, 16, 4, 8, 1>, F<4, 8, 4, 8, 1>, F<8, 4, 4, 8, 1>, F<16, 2, 4, 8, 1>>
    candidates;
