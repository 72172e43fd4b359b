#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::precision::f16x2_f16::stage}, argc, argv); }
