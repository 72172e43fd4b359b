// The ladder: every stage of the row-wise RMSNorm, checked on the same inputs and, on a GPU, timed side by side.
#include "01_basic/kernel.cuh"
#include "02_reduction5/kernel.cuh"
#include "03_tiled/kernel.cuh"
#include "04_hybrid/kernel.cuh"
#include "05_warp_shuffle/kernel.cuh"
#include "06_vectorized/kernel.cuh"

int main(int argc, char** argv) {
  return ladder::run_ladder(
      {basic::stage, reduction5::stage, tiled::stage, hybrid::stage, warp_shuffle::stage, vectorized::stage}, argc,
      argv);
}
