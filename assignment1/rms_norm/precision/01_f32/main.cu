#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::precision::f32::stage}, argc, argv); }
