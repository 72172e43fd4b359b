#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::precision::f16_f32::stage}, argc, argv); }
