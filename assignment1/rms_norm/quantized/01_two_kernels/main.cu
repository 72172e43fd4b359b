#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::quantized::two_kernels::stage}, argc, argv); }
