// How fast can a GPU copy, and how does one measure it honestly? The kernels are in kernel.cuh, what is measured
// besides their times in experiments.cu and launches.cu, the story in README.md.
#include "experiments.h"
#include "kernel.cuh"

int main(int argc, char** argv) {
  using namespace ladder::memory_bandwidth;
  return ladder::run_lecture(stages, experiments, argc, argv);
}
