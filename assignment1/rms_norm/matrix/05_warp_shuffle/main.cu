#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(warp_shuffle::stage, argc, argv); }
