// The ladder: every stage, checked and, on a GPU, timed. Then the engine's dispatch, the document's tables with what
// they lack, and the calls of whole models.
#include "experiments/engine.cuh"
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::inference::stages, ladder::inference::experiments, argc, argv);
}
