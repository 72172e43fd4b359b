#include "bench/q4_tune/instance.cuh"

using namespace q4_tune;
static const Many<R<16, 1, 2>, R<16, 2, 2>, R<32, 4, 1>, R<32, 2, 2>, R<64, 4, 1>, R<64, 1, 2>, R<64, 2, 1>> candidates;
