#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Many<E<16, 1, 4, 1>, E<16, 1, 2, 2>, E<32, 1, 4, 1>, E<32, 1, 2, 2>, E<64, 1, 4, 1>, E<64, 1, 3, 1>,
                  E<64, 1, 2, 1>, E<64, 1, 2, 2>, E<64, 2, 1, 1>, E<128, 1, 2, 1>, E<128, 2, 1, 1>, E<128, 1, 1, 2>>
    candidates;
