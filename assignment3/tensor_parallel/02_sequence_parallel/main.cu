#include "kernel.cuh"

int main(int argc, char** argv) {
  return ladder::run_all({ladder::tensor_parallel::sequence_parallel::stage}, argc, argv);
}
