// The gradients of RMSNorm, y = x · rstd · (weight_offset + weight) with rstd = 1 / sqrt(mean(x²) + eps):
//   g = dy · (weight_offset + weight)
//   dx = rstd · (g - x · rstd² · mean(g · x)) + dsum
//   dweight = the sum of dy · x · rstd over all rows
#pragma once
#include "common/operators/dtype.h"
#include "common/stage.h"

namespace ladder {

// dy, x, dsum and dx: rows × cols elements without gaps; weight and dweight: cols elements. All of them have one type
// and are aligned to an element and no more.
struct BackwardCall {
  const void *dy, *x;
  const void* weight;  // or nullptr: g = dy
  const void* dsum;    // the gradient of what was added to x; or nullptr
  const float* rstd;   // of each row, as the forward pass has stored it; or nullptr: computed again
  void* dx;
  void* dweight;  // or nullptr: not wanted
  // Scratch memory, aligned to 256 bytes. All launches get the same, as those of one stream would in a library; its
  // contents before a launch are unknown.
  float* row_scratch;  // rows floats
  float* partial;      // at most kMostPartials rows of cols floats: as many as there are rows, but at least one
  float eps, weight_offset;
  int64_t rows, cols;
  Dtype dtype;
};

constexpr int64_t kMostPartials = 512;

namespace rms_norm_backward {
enum Place { kDy, kX, kWeight, kDsum, kRstd, kDx, kDweight, kRowScratch, kPartial };  // the operator's tensors
enum Scalar { kEps, kWeightOffset };
}  // namespace rms_norm_backward

// repeats_bits: the same call must give the same bits each time.
template <bool repeats_bits>
struct BackwardNorm {
  using Launch = void (*)(const BackwardCall& call, cudaStream_t stream);
  static const Operator& get();

  static const char* refuses(const Shape& shape) {
    return shape[0] > INT32_MAX ? "more rows than a grid has blocks for; give fewer rows" : nullptr;
  }
  static const char* refuses_beyond_8192(const Shape& shape) {
    return shape[1] > 8192 ? "a block keeps a row, eight columns in each of 1024 threads; give at most 8192 cols"
                           : nullptr;
  }
};

template <bool repeats_bits>
void call(BackwardNorm<repeats_bits>, void (*launch)(const BackwardCall&, cudaStream_t), const Arguments& arguments,
          cudaStream_t stream);

using RmsNormBackward = BackwardNorm<true>;
using RmsNormBackwardAnyOrder = BackwardNorm<false>;

}  // namespace ladder
