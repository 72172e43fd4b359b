#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<1, 4, 4, 16, 1>, F<2, 2, 4, 16, 1>, F<2, 2, 6, 16, 1>, F<4, 1, 4, 16, 1>, F<4, 1, 6, 16, 1>,
                 F<2, 1, 6, 16, 2>, F<1, 2, 6, 16, 2>>
    candidates;
