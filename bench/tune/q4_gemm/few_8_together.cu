#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<2, 2, 8, 6, 8, 2>, F<4, 2, 4, 5, 8, 2>, F<4, 2, 4, 6, 8, 2>, F<4, 4, 8, 3, 8, 2>,
                 F<4, 4, 4, 5, 8, 2>>
    candidates;
