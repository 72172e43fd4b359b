#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(ladder::serving::fused_add::stage, argc, argv); }
