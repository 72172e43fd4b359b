#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<1, 4, 4, 1, 2>, F<1, 4, 3, 1, 2>, F<1, 2, 6, 1, 2>, F<1, 2, 10, 1, 2>, F<2, 1, 6, 1, 2>> candidates;
