#include "ranks.cuh"

template void all_reduce_test::run_group<__half>(const std::string&, int);
