#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::quantized::one_kernel::stage}, argc, argv); }
