// The ladder: every stage of the RMSNorm of one row, checked on the same inputs and, on a GPU, timed side by side. Then
// the experiments on what a short kernel spends its time on.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::vector::stages, ladder::vector::experiments, argc, argv);
}
