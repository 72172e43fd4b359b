#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::serving::cub_block_reduce::stage}, argc, argv); }
