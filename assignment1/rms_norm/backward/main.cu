// The ladder: every stage of RMSNorm's gradients, checked and, on a GPU, timed. Then what each kind of call costs.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::backward::stages, ladder::backward::experiments, argc, argv);
}
