#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(ladder::q4_gemm::warp_specialized::stage, argc, argv); }
