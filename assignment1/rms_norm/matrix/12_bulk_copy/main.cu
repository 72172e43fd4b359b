#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(bulk_copy::stage, argc, argv); }
