#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::weight_64_bit::stage}, argc, argv); }
