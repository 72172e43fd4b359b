// benchmark_warp_optimized: the document's five kernels on its five shapes, checked and, on a GPU, timed. It takes the
// options of q4_gemm_test.
#include "assignment2/q4_gemm/experiments/experiments.h"
#include "build/generated/assignment2/q4_gemm/stages.cuh"

int main(int argc, char** argv) {
  using namespace ladder::q4_gemm;
  return ladder::run_all({stages.begin(), stages.begin() + 5}, {{"document", "the document's table", document, false}},
                         argc, argv);
}
