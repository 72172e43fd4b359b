#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::quantized::fewer_warps::stage}, argc, argv); }
