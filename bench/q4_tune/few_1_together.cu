#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<2, 8, 6, 1, 2>, F<2, 8, 8, 1, 2>, F<8, 4, 4, 1, 2>, F<2, 8, 4, 1, 4>> candidates;
