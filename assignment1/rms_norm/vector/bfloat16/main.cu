// The ladder's last stages with rows, weights and results of bfloat16, whose packs have eight elements: half the bytes,
// and the same waits.
#include <vector>

#include "assignment1/rms_norm/vector/13_prefetch/kernel.cuh"
#include "assignment1/rms_norm/vector/14_copied_words/kernel.cuh"
#include "assignment1/rms_norm/vector/controls/form.cuh"
#include "common/operators/rms_norm_vector.h"

namespace ladder::vector::bfloat16 {

using namespace controls;
using bf16 = __nv_bfloat16;

constexpr Requires kHopper = {90};

using TypedLaunch = void (*)(const bf16*, const bf16*, bf16*, float*, int64_t, float, cudaStream_t);
template <TypedLaunch typed>
void untyped(const void* input, const void* weight, void* output, float* scratch, int64_t n, float eps,
             cudaStream_t stream) {
  typed(static_cast<const bf16*>(input), static_cast<const bf16*>(weight), static_cast<bf16*>(output), scratch, n, eps,
        stream);
}

template <int number, int blocks, int threads, int vectors, Exchange exchange = Exchange::block,
          Next next = Next::at_once, Early early = Early::lines, int cluster = 1>
constexpr RmsNormVectorBfloat16::Launch form =
    untyped<controls::launch<bf16, Form<number, blocks, threads, vectors, exchange, next, early, cluster>>>;

const std::vector<Stage<RmsNormVectorBfloat16>> all = {
    {"13_prefetch", "13 with bfloat16", untyped<prefetch::launch<bf16>>, kHopper},
    {"14_copied_words", "14 with bfloat16", untyped<copied_words::launch<bf16>>, kHopper},
    {"12_plain_launch", "12, launched the ordinary way",
     form<0, 128, 256, 4, Exchange::block, Next::plain, Early::nothing>, kHopper},
    {"12_one_word", "12 with bfloat16", form<1, 128, 256, 4, Exchange::block, Next::after_sum, Early::nothing>,
     kHopper},
    {"12_early_trigger", "12, with 13's early trigger and no prefetch",
     form<2, 128, 256, 4, Exchange::block, Next::at_once, Early::nothing>, kHopper},
    {"12_with_prefetch", "12, with 13's prefetch and the trigger after the sum",
     form<3, 128, 256, 4, Exchange::block, Next::after_sum>, kHopper},
    {"13_fixed_shape", "13, compiled for its number of threads", form<4, 128, 256, 4>, kHopper},
    {"13_bulk_prefetch", "one thread asks for a stretch of 4 KB",
     form<5, 128, 256, 4, Exchange::block, Next::at_once, Early::bulk>, kHopper},
    {"13_one_warp", "one warp reads all words", form<6, 128, 256, 4, Exchange::one_warp>, kHopper},
    {"13_every_warp", "every warp reads all words", form<7, 128, 256, 4, Exchange::every_warp>, kHopper},
    {"13_cluster_8", "clusters of 8 blocks add up first",
     form<9, 128, 256, 4, Exchange::cluster, Next::at_once, Early::lines, 8>, kHopper},
    {"13_cluster_16", "clusters of 16 blocks add up first",
     form<10, 128, 256, 4, Exchange::cluster, Next::at_once, Early::lines, 16>, kHopper},
    {"13_512_threads", "512 threads with 2 packs each", form<11, 128, 512, 2>, kHopper},
    {"13_1024_threads", "1024 threads with a pack each", form<12, 128, 1024, 1>, kHopper},
    {"13_128_threads", "128 threads with 8 packs each", form<13, 128, 128, 8>, kHopper},
    {"13_132_blocks", "a block on every SM of an H200", form<14, 132, 256, 4>, kHopper},
    {"13_64_blocks", "64 blocks of 512 threads", form<15, 64, 512, 4>, kHopper},
    {"14_own_copy", "a copy of the words for each block", form<8, 128, 256, 4, Exchange::own, Next::after_wait>,
     kHopper},
    {"14_copy_for_four", "a copy of the words for every four blocks",
     form<16, 128, 256, 4, Exchange::quads, Next::after_wait>, kHopper},
    {"14_without_prefetch", "14 without the prefetch",
     form<17, 128, 256, 4, Exchange::pairs, Next::after_wait, Early::nothing>, kHopper},
    {"14_one_copy", "13's words, which all blocks read", form<18, 128, 256, 4, Exchange::block, Next::after_wait>,
     kHopper},
    {"14_trigger_at_once", "the next kernel may begin at once, as in 13",
     form<20, 128, 256, 4, Exchange::pairs, Next::at_once>, kHopper},
    {"14_trigger_after_sum", "the next kernel may begin after the sum",
     form<19, 128, 256, 4, Exchange::pairs, Next::after_sum>, kHopper},
};

}  // namespace ladder::vector::bfloat16

int main(int argc, char** argv) {
  using ladder::vector::bfloat16::all;
  return ladder::run_all({all.begin(), all.end()}, argc, argv);
}
