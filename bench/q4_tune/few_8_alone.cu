#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<1, 4, 4, 8, 1>, F<1, 4, 6, 8, 1>, F<2, 2, 4, 8, 1>, F<2, 2, 6, 8, 1>, F<4, 1, 4, 8, 1>,
                 F<4, 1, 6, 8, 1>>
    candidates;
