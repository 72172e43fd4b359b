#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<2, 16, 4, 1, 1>, F<2, 16, 6, 1, 1>, F<4, 8, 4, 1, 1>, F<4, 8, 6, 1, 1>, F<8, 4, 6, 1, 1>,
                 F<16, 2, 6, 1, 1>>
    candidates;
