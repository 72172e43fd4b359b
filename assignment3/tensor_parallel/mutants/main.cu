// Kernels that are wrong on purpose, and a program that shows one of them to the checker: --mutant NAME.
#include <cstdlib>

#include "mutants.cuh"

int main(int argc, char** argv) {
  setenv("SIMT_TIMEOUT", "3", 0);  // some wait forever: the CPU device ends a kernel that makes no progress
  return ladder::run_mutants(ladder::tensor_parallel::mutants::all, argc, argv);
}
