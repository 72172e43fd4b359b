#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<2, 2, 16, 3, 8, 1>, F<2, 2, 16, 4, 8, 1>, F<4, 2, 8, 4, 8, 1>, F<4, 2, 8, 6, 8, 1>,
                 F<4, 4, 8, 4, 8, 1>, F<8, 4, 8, 3, 8, 1>, F<8, 2, 4, 4, 8, 1>>
    candidates;
