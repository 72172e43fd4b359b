// The ladder: every stage, checked and, on a GPU, timed. Then the document's table with what it lacks, the error of
// quantization, the tiles, sums by atomic additions, and one kernel over half a minute.
#include "experiments/experiments.h"
#include "stages.cuh"

int main(int argc, char** argv) {
  return ladder::run_all(ladder::q4_gemm::stages, ladder::q4_gemm::experiments, argc, argv);
}
