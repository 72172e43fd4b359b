#include "bench/tune/q4_gemm/instance.cuh"

using namespace tune;
static const Many<R<32, 1, 4, 1>, R<32, 1, 3, 1>, R<32, 2, 2, 1>, R<64, 1, 4, 1>, R<64, 1, 3, 1>, R<64, 1, 2, 1>,
                  R<64, 2, 2, 1>>
    candidates;
