// How fast can each unit of a GPU be? The kernels are in kernel.cuh and products.cuh, the story in README.md.
#include "experiments/ceilings.h"
#include "kernel.cuh"

int main(int argc, char** argv) {
  using namespace ladder::roofline;
  return ladder::run_all(stages, experiments, argc, argv);
}
