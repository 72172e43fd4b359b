// The ladder: every stage of rms_norm and fused_add_rms_norm, checked and, on a GPU, timed. Then the experiments on
// what the document claims and on what it leaves to the future.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::serving::stages, ladder::serving::experiments, argc, argv);
}
