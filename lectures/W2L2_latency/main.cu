// One small kernel for each thing that a warp waits for: the same walk, with every step through a different unit.
#include "stages.cuh"  // first: it keeps each stage's own main out

#include "experiments/experiments.h"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::latency::stages, ladder::latency::experiments, argc, argv);
}
