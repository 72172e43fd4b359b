#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Many<R<128, 4, 1, 1>, R<128, 3, 1, 1>, R<128, 2, 2, 1>, R<128, 2, 1, 1>, R<128, 1, 3, 1>> candidates;
