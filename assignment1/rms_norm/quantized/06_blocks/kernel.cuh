// 06_blocks: 05_packed with a scale for each 128 columns, if the call asks for that: 16 lanes have them, and exchange
// the largest number with four shuffles. The row's sum is all that the block still has to exchange.
//
// It removes the search for the largest number of the row from the reduction, and adds 4 bytes of scales per 128 codes
// (counter: written to DRAM). Scales of one block of columns lie side by side, as products with block scales read them.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::blocks {

constexpr int kLanes = kBlockColumns / kColumns;  // that share a scale

template <Format format, bool kBlocks>
__global__ void __launch_bounds__(kMostThreads) row_kernel(const QuantizedCall c, bool aligned) {
  __shared__ SumAndMost in_warps[32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = c.cols - first;
  const int64_t begin = blockIdx.x * c.cols + first;
  const bool vector = aligned && columns > 0;
  const Eight eight = load_eight(c, begin, first, vector, columns);
  SumAndMost own = sum_and_most(eight);
  SumAndMost row;
  if constexpr (kBlocks) {
    for (int mask = kLanes / 2; mask > 0; mask /= 2)
      own.most = fmaxf(own.most, __shfl_xor_sync(0xffffffffu, own.most, mask));
    row = {block_sum(own.sum, &in_warps[0].sum), own.most};
  } else {
    row = block_sum_and_most(own, in_warps);
  }
  const float rstd = rstd_of(c, row.sum);
  const float scale = scale_of<format>(c, __bfloat162float(norm_of(row.most, rstd)));
  store_eight<format>(c, begin, eight, rstd, scale, vector, columns);
  const bool writes = kBlocks ? threadIdx.x % kLanes == 0 && columns > 0 : threadIdx.x == 0;
  const int64_t block = kBlocks ? threadIdx.x / kLanes : 0;
  if (writes && c.scales != nullptr) c.scales[block * c.rows + blockIdx.x] = scale;
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  with_format(call.format, [&](auto format) {
    const auto kernel =
        call.blocks ? row_kernel<decltype(format)::value, true> : row_kernel<decltype(format)::value, false>;
    kernel<<<blocks, threads_for(call.cols), 0, stream>>>(call, takes_vectors(call));
  });
}

inline const Stage<RmsNormQuantized> stage{
    "06_blocks", "a scale for each 128 columns", launch, {0, RmsNormQuantized::refuses_beyond_8192}};

}  // namespace ladder::quantized::blocks
