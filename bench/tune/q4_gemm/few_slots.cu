#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Few<F<4, 4, 8, 3, 8, 1, true>, F<4, 4, 8, 4, 8, 1, true>, F<4, 4, 8, 5, 8, 1, true>,
                 F<4, 4, 12, 3, 8, 1, true>, F<8, 4, 8, 3, 8, 1, true>, F<8, 4, 4, 4, 8, 1, true>,
                 F<2, 2, 8, 4, 8, 2, true>, F<4, 4, 4, 4, 8, 2, true>, F<4, 4, 8, 3, 16, 1, true>,
                 F<4, 4, 12, 3, 16, 1, true>, F<8, 4, 4, 3, 16, 1, true>, F<2, 2, 8, 3, 16, 2, true>,
                 F<4, 4, 4, 3, 16, 2, true>>
    candidates;
