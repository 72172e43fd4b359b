// Kernels beside the stages, checked as strictly as the stages and timed beside them.
#include "assignment1/rms_norm/backward/08_prefetch/kernel.cuh"
#include "assignment1/rms_norm/backward/09_cluster/kernel.cuh"
#include "assignment1/rms_norm/backward/10_dependent_launch/kernel.cuh"
#include "let_in_early.cuh"
#include "shifted.cuh"

int main(int argc, char** argv) {
  using namespace ladder::backward;
  return ladder::run_all({prefetch::stage, controls::shifted::stage, cluster::stage, dependent_launch::stage,
                          controls::let_in_early::stage},
                         argc, argv);
}
