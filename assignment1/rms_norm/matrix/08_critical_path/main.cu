#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_stage(critical_path::stage, argc, argv); }
