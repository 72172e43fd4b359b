#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::loads_128_bit::stage}, argc, argv); }
