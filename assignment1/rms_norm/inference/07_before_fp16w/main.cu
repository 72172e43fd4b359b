#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::inference::before_fp16w::stage}, argc, argv); }
