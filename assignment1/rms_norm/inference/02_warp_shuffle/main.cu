#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(ladder::inference::warp_shuffle::stage, argc, argv); }
