// The ladder: every stage, checked and, on a GPU, timed. Then the document's table with what it lacks, and the
// overflow.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::precision::stages, ladder::precision::experiments, argc, argv);
}
