#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<2, 2, 8, 8, 1, 2>, F<2, 2, 8, 9, 1, 2>, F<4, 4, 8, 4, 1, 2>, F<4, 4, 8, 5, 1, 2>,
                 F<4, 4, 4, 6, 1, 3>>
    candidates;
