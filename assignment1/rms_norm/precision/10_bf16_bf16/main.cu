#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::precision::bf16_bf16::stage}, argc, argv); }
