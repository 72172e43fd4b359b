// What follows a matrix product that is split over several GPUs: the ranks' partial results are added, then the
// residual, then the norm:
//   kept = partial of rank 0 + … + partial of the last rank + residual, rounded to bfloat16
//   y = kept / sqrt(mean(kept²) + eps) · weight, rounded to bfloat16, the same bits on every rank
#pragma once
#include "common/stage.h"

struct __nv_bfloat16;

namespace ladder {

constexpr int kMostRanks = 8;

// Matrices are rows × cols elements without gaps; all are aligned to an element and no more. A sharded residual, and
// kept with it, has only the rows of its rank: rank r has shard_rows(rows, ranks) of them from row r · that on, the
// last ranks fewer or none.
struct AllReduceCall {
  struct Rank {  // lies on device number rank
    const __nv_bfloat16 *partial, *residual, *weight;
    __nv_bfloat16 *kept, *y;
  };
  Rank rank[kMostRanks];
  int ranks;
  int64_t rows, cols;
  float eps;
};
constexpr int64_t shard_rows(int64_t rows, int64_t ranks) { return (rows + ranks - 1) / ranks; }

// once: partials and residual are added in float32, in the order of the ranks, and rounded once; otherwise each
// addition may round to bfloat16, as NCCL's do.
enum class Sums { once, each };
// everywhere: each rank keeps the whole residual; sharded: its own rows; by_size: sharded from fewest_sharded(ranks)
// rows on.
enum class Residual { everywhere, sharded, by_size };

template <Sums sums, Residual residual>
struct AllReduceNorm {
  using Launch = void (*)(const AllReduceCall& call, cudaStream_t stream);  // launches on every device
  static const Operator& get();
};
// From so many rows on two shots take less time. With two ranks they send as much as one shot; with R, one shot sends
// R / 2 times as much, and SCALING.md of the ladder says how the number falls.
constexpr int64_t fewest_sharded(int64_t ranks) { return ranks <= 2 ? 256 : 128 * ranks / ((ranks - 1) * (ranks - 2)); }

namespace all_reduce_rms_norm {
enum Part { kPartial, kResidual, kWeight, kKept, kY, kParts };  // the operator's tensors, of each rank in turn
}

template <Sums sums, Residual residual>
void call(AllReduceNorm<sums, residual>, void (*launch)(const AllReduceCall&, cudaStream_t), const Arguments& arguments,
          cudaStream_t stream);

using AllReduceRmsNorm = AllReduceNorm<Sums::once, Residual::everywhere>;
using AllReduceRmsNormSharded = AllReduceNorm<Sums::once, Residual::sharded>;
using AllReduceRmsNormBySize = AllReduceNorm<Sums::once, Residual::by_size>;
using NcclRmsNorm = AllReduceNorm<Sums::each, Residual::everywhere>;
using NcclRmsNormSharded = AllReduceNorm<Sums::each, Residual::sharded>;

}  // namespace ladder
