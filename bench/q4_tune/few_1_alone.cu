#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Few<F<1, 4, 4, 1, 1>, F<1, 4, 6, 1, 1>, F<1, 4, 10, 1, 1>, F<2, 2, 6, 1, 1>, F<4, 1, 6, 1, 1>> candidates;
