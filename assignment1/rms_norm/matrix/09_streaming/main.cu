#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(streaming::stage, argc, argv); }
