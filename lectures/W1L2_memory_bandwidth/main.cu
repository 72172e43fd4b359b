// How fast can a GPU copy, and how does one measure it honestly? The kernels are in kernel.cuh, the story in README.md.
#include "experiments/experiments.h"
#include "kernel.cuh"

int main(int argc, char** argv) {
  using namespace ladder::memory_bandwidth;
  return ladder::run_all(stages, experiments, argc, argv);
}
