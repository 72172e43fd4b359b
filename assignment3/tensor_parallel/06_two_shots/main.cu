#include "kernel.cuh"

int main(int argc, char** argv) { return ladder::run_all({ladder::tensor_parallel::two_shots::stage}, argc, argv); }
