// The ladder: every stage of the norm that ends in 8 bits, checked and, on a GPU, timed. Then what 8 bits cost in
// error.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::quantized::stages, ladder::quantized::experiments, argc, argv);
}
