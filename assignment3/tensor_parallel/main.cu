// The ladder: every stage of all-reduce, residual and norm, checked and, on GPUs, timed; then two experiments.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::tensor_parallel::stages, ladder::tensor_parallel::experiments, argc, argv);
}
