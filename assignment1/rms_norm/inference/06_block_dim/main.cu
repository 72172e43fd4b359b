#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::block_dim::stage}, argc, argv); }
