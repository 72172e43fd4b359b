#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<4, 2, 8, 3, 16, 1>, F<4, 2, 8, 4, 16, 1>, F<8, 2, 4, 4, 16, 1>, F<16, 2, 2, 4, 16, 1>,
                 F<2, 2, 8, 6, 16, 2>, F<4, 2, 4, 5, 16, 2>, F<4, 2, 4, 6, 16, 2>, F<4, 4, 8, 3, 16, 1>>
    candidates;
