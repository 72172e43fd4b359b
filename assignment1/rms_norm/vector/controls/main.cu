// Kernels beside 02_two_kernels, 12_one_word, 13_prefetch and 14_copied_words: one choice changed at a time.
#include <vector>

#include "assignment1/rms_norm/vector/02_two_kernels/kernel.cuh"
#include "assignment1/rms_norm/vector/11_dependent_launch/kernel.cuh"
#include "assignment1/rms_norm/vector/12_one_word/kernel.cuh"
#include "assignment1/rms_norm/vector/13_prefetch/kernel.cuh"
#include "assignment1/rms_norm/vector/14_copied_words/kernel.cuh"
#include "common/operators/rms_norm_vector.h"
#include "form.cuh"
#include "three_kernels.cuh"

namespace ladder::vector {

using namespace controls;

constexpr Requires kHopper = {90};

template <int number, int blocks, int threads, int vectors, Exchange exchange = Exchange::block,
          Next next = Next::at_once, Early early = Early::lines, int cluster = 1, bool keeps_weight = true>
constexpr RmsNormVector::Launch form =
    controls::launch<float, Form<number, blocks, threads, vectors, exchange, next, early, cluster, keeps_weight>>;

const std::vector<Stage<RmsNormVector>> all = {
    two_kernels::stage,
    {"02_three_kernels", "02, with a kernel in between that adds up the partial sums", launch_three_kernels},
    dependent_launch::stage,
    one_word::stage,
    prefetch::stage,
    copied_words::stage,
    {"12_plain_launch", "12, launched the ordinary way",
     form<0, 128, 512, 4, Exchange::block, Next::plain, Early::nothing>, kHopper},
    {"12_plain_launch_late_weight", "the same, with the weight loaded after the sum",
     form<19, 128, 512, 4, Exchange::block, Next::plain, Early::nothing, 1, false>, kHopper},
    {"12_early_trigger", "12, with 13's early trigger and no prefetch",
     form<1, 128, 512, 4, Exchange::block, Next::at_once, Early::nothing>, kHopper},
    {"12_with_prefetch", "12, with 13's prefetch and the trigger after the sum",
     form<2, 128, 512, 4, Exchange::block, Next::after_sum>, kHopper},
    {"13_fixed_shape", "13, compiled for its number of threads", form<3, 128, 512, 4>, kHopper},
    {"13_bulk_prefetch", "one thread asks for a stretch of 8 KB",
     form<4, 128, 512, 4, Exchange::block, Next::at_once, Early::bulk>, kHopper},
    {"13_one_warp", "one warp reads all words", form<5, 128, 512, 4, Exchange::one_warp>, kHopper},
    {"13_every_warp", "every warp reads all words", form<6, 128, 512, 4, Exchange::every_warp>, kHopper},
    {"13_cluster_8", "clusters of 8 blocks add up first",
     form<8, 128, 512, 4, Exchange::cluster, Next::at_once, Early::lines, 8>, kHopper},
    {"13_cluster_16", "clusters of 16 blocks add up first",
     form<9, 128, 512, 4, Exchange::cluster, Next::at_once, Early::lines, 16>, kHopper},
    {"13_256_threads", "256 threads with 8 float4 each", form<10, 128, 256, 8>, kHopper},
    {"13_1024_threads", "1024 threads with 2 float4 each", form<11, 128, 1024, 2>, kHopper},
    {"13_132_blocks", "a block on every SM of an H200", form<12, 132, 512, 4>, kHopper},
    {"13_64_blocks", "64 blocks of 1024 threads", form<13, 64, 1024, 4>, kHopper},
    {"14_own_copy", "a copy of the words for each block", form<7, 128, 512, 4, Exchange::own, Next::after_wait>,
     kHopper},
    {"14_copy_for_four", "a copy of the words for every four blocks",
     form<14, 128, 512, 4, Exchange::quads, Next::after_wait>, kHopper},
    {"14_without_prefetch", "14 without the prefetch",
     form<15, 128, 512, 4, Exchange::pairs, Next::after_wait, Early::nothing>, kHopper},
    {"14_one_copy", "13's words, which all blocks read", form<16, 128, 512, 4, Exchange::block, Next::after_wait>,
     kHopper},
    {"14_trigger_at_once", "the next kernel may begin at once, as in 13",
     form<18, 128, 512, 4, Exchange::pairs, Next::at_once>, kHopper},
    {"14_trigger_after_sum", "the next kernel may begin after the sum",
     form<17, 128, 512, 4, Exchange::pairs, Next::after_sum>, kHopper},
};

}  // namespace ladder::vector

int main(int argc, char** argv) {
  using ladder::vector::all;
  return ladder::run_all({all.begin(), all.end()}, argc, argv);
}
