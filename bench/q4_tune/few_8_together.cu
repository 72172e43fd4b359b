#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<1, 4, 4, 8, 2>, F<2, 2, 4, 8, 2>, F<1, 2, 6, 8, 2>, F<1, 2, 10, 8, 2>, F<2, 1, 6, 8, 2>> candidates;
