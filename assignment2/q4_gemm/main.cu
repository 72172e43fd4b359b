// The ladder: every stage, checked and, on a GPU, timed. Then the document's table with what it lacks, the error of
// quantization, the tiles, sums by atomic additions, and one kernel over half a minute.
#include "experiments/experiments.h"
#include "stages.cuh"

namespace ladder::q4_gemm {

const std::vector<Experiment> experiments = {
    {"document", "the document's table: outputs that are wrong, the largest error, GFLOP/s warm and cold", document,
     false},
    {"quantization", "how far is the product of quantized numbers from that of the numbers themselves?", quantization,
     false},
    {"tiles", "which tile suits 05_tile2d?", tiles, false},
    {"atomics", "what do atomic additions cost in place of 02_warp_multirow's shuffles?", atomics, false},
    {"over_time", "does 05_tile2d get slower while the GPU gets hot, and does a pause help?", over_time},
};

}  // namespace ladder::q4_gemm

int main(int argc, char** argv) {
  return ladder::run_all(ladder::q4_gemm::stages, ladder::q4_gemm::experiments, argc, argv);
}
