#include "ranks.cuh"

template void all_reduce_test::run_group<float>(const std::string&, int);
