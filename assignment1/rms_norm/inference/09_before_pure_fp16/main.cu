#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::before_pure_fp16::stage}, argc, argv); }
