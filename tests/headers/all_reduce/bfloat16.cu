#include "ranks.cuh"

template void all_reduce_test::run_group<__nv_bfloat16>(const std::string&, int);
