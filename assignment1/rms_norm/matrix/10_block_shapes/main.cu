#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::matrix::block_shapes::stage}, argc, argv); }
