#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::q4_gemm::multi_stage::stage}, argc, argv); }
