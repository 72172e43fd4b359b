#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(reduction5::stage, argc, argv); }
