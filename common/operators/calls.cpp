// How operators call launchers that take their arguments in a form of their own. Apart from the oracles: the process
// that runs a student's kernels has this file and not them.
#include "common/operators/all_reduce_rms_norm.h"
#include "common/operators/q4_parts.h"
#include "common/operators/rms_norm_backward.h"
#include "common/operators/rms_norm_quantized.h"
#include "common/operators/rms_norm_serving.h"

namespace ladder {

template <class W>
void call(Q4Gemm<W>, void (*launch)(W, const block_q8_1*, float*, float*, int64_t, int64_t, int64_t, cudaStream_t),
          const Arguments& a, cudaStream_t stream) {
  const q4::Form<W> form{a.shape[0], a.shape[2] / kBlock};
  launch(form.of(a.tensors[q4_gemm::kWeights]), a.tensor<const block_q8_1>(q4_gemm::kX), a.tensor<float>(q4_gemm::kY),
         a.tensor<float>(q4_gemm::kScratch), a.shape[0], a.shape[1], a.shape[2], stream);
}

template void call(Q4GemmBlocks, Q4GemmBlocks::Launch, const Arguments&, cudaStream_t);
template void call(Q4GemmRepacked, Q4GemmRepacked::Launch, const Arguments&, cudaStream_t);
template void call(Q4GemmFragments, Q4GemmFragments::Launch, const Arguments&, cudaStream_t);

template <bool adds_residual, bool llama>
void call(ServingNorm<adds_residual, llama>, RmsNormServing::Launch launch, const Arguments& a, cudaStream_t stream) {
  using Typed = TypedRmsNorm;
  const auto gap = static_cast<int64_t>(a.scalars[RmsNormServing::kRowGap]);
  launch({a.tensors[Typed::kY], a.tensors[Typed::kX], a.shape[1] + gap,
          adds_residual ? a.tensors[Typed::kResidual] : nullptr, a.tensors[Typed::kWeight],
          static_cast<float>(a.scalars[Typed::kEps]), a.shape[0], a.shape[1], static_cast<Dtype>(a.shape[2])},
         stream);
}

template void call(RmsNormServing, RmsNormServing::Launch, const Arguments&, cudaStream_t);
template void call(FusedAddRmsNorm, FusedAddRmsNorm::Launch, const Arguments&, cudaStream_t);
template void call(FusedAddRmsNormOnce, FusedAddRmsNormOnce::Launch, const Arguments&, cudaStream_t);

template <bool repeats_bits>
void call(BackwardNorm<repeats_bits>, RmsNormBackward::Launch launch, const Arguments& a, cudaStream_t stream) {
  using namespace rms_norm_backward;
  launch({a.tensors[kDy], a.tensors[kX], a.tensors[kWeight], a.tensors[kDsum], a.tensor<const float>(kRstd),
          a.tensors[kDx], a.tensors[kDweight], a.tensor<float>(kRowScratch), a.tensor<float>(kPartial),
          static_cast<float>(a.scalars[kEps]), static_cast<float>(a.scalars[kWeightOffset]), a.shape[0], a.shape[1],
          static_cast<Dtype>(a.shape[2])},
         stream);
}

template void call(RmsNormBackward, RmsNormBackward::Launch, const Arguments&, cudaStream_t);
template void call(RmsNormBackwardAnyOrder, RmsNormBackward::Launch, const Arguments&, cudaStream_t);

template <Sums sums, Residual residual>
void call(AllReduceNorm<sums, residual>, AllReduceRmsNorm::Launch launch, const Arguments& a, cudaStream_t stream) {
  using namespace all_reduce_rms_norm;
  AllReduceCall all = {};
  all.ranks = static_cast<int>(a.shape[2]);
  all.rows = a.shape[0];
  all.cols = a.shape[1];
  all.eps = static_cast<float>(a.scalars[0]);
  for (int rank = 0; rank < all.ranks; ++rank) {
    const int first = rank * kParts;
    using T = __nv_bfloat16;
    all.rank[rank] = {a.tensor<const T>(first + kPartial), a.tensor<const T>(first + kResidual),
                      a.tensor<const T>(first + kWeight), a.tensor<T>(first + kKept), a.tensor<T>(first + kY)};
  }
  launch(all, stream);
}

template void call(AllReduceRmsNorm, AllReduceRmsNorm::Launch, const Arguments&, cudaStream_t);
template void call(AllReduceRmsNormSharded, AllReduceRmsNorm::Launch, const Arguments&, cudaStream_t);
template void call(AllReduceRmsNormBySize, AllReduceRmsNorm::Launch, const Arguments&, cudaStream_t);
template void call(NcclRmsNorm, AllReduceRmsNorm::Launch, const Arguments&, cudaStream_t);
template void call(NcclRmsNormSharded, AllReduceRmsNorm::Launch, const Arguments&, cudaStream_t);

void call(RmsNormQuantized, RmsNormQuantized::Launch launch, const Arguments& a, cudaStream_t stream) {
  using namespace rms_norm_quantized;
  launch(
      {a.tensor<const __nv_bfloat16>(kX), a.tensor<const __nv_bfloat16>(kWeight),
       a.tensor<const __nv_bfloat16>(kResidual), a.tensor<const float>(kScale), a.tensors[kQ], a.tensor<float>(kScales),
       a.tensor<__nv_bfloat16>(kResidualOut), a.tensor<__nv_bfloat16>(kY), a.tensor<__nv_bfloat16>(kScratch),
       static_cast<float>(a.scalars[0]), a.shape[0], a.shape[1], format_of(a.shape), blocks_of(a.shape)},
      stream);
}

}  // namespace ladder
