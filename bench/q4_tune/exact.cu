#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Many<E<16, 1, 2>, E<16, 2, 2>, E<32, 2, 2>, E<32, 4, 1>, E<64, 4, 1>, E<64, 1, 2>, E<64, 2, 1>> candidates;
