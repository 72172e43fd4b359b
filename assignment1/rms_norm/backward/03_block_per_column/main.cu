#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::backward::block_per_column::stage}, argc, argv); }
