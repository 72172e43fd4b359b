// Kernels that are wrong on purpose, and a program that shows one of them to the checker: --mutant NAME.
#include "mutants.cuh"

int main(int argc, char** argv) { return ladder::run_mutants(ladder::tensor_parallel::mutants::all, argc, argv); }
