// The ladder: every stage of the row-wise RMSNorm, checked on the same inputs and, on a GPU, timed side by side.
#include "01_basic/kernel.cuh"
#include "02_reduction5/kernel.cuh"
#include "03_tiled/kernel.cuh"
#include "04_hybrid/kernel.cuh"
#include "05_warp_shuffle/kernel.cuh"
#include "06_vectorized/kernel.cuh"
#include "07_registers/kernel.cuh"
#include "08_critical_path/kernel.cuh"
#include "09_streaming/kernel.cuh"
#include "10_block_shapes/kernel.cuh"
#include "11_persistent/kernel.cuh"
#include "12_bulk_copy/kernel.cuh"
#include "13_cluster/kernel.cuh"
#include "14_dependent_launch/kernel.cuh"
#include "15_many_blocks/kernel.cuh"

int main(int argc, char** argv) {
  return ladder::run_ladder(
      {basic::stage, reduction5::stage, tiled::stage, hybrid::stage, warp_shuffle::stage, vectorized::stage,
       registers::stage, critical_path::stage, streaming::stage, block_shapes::stage, persistent::stage,
       bulk_copy::stage, cluster::stage, dependent_launch::stage, many_blocks::stage},
      argc, argv);
}
