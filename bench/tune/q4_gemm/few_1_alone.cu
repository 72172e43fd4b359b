#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<2, 2, 16, 4, 1, 1>, F<2, 2, 16, 6, 1, 1>, F<4, 2, 8, 6, 1, 1>, F<4, 2, 8, 7, 1, 1>,
                 F<4, 4, 16, 4, 1, 1>, F<4, 4, 16, 5, 1, 1>, F<8, 4, 8, 4, 1, 1>>
    candidates;
