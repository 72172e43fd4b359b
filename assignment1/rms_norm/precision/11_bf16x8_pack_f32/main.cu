#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::precision::bf16x8_pack_f32::stage}, argc, argv); }
