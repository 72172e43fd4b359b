// 07_fewer_warps: 06_blocks with two packs of eight columns per thread, so that a row of 4096 columns has 8 warps and
// not 16.
//
// Each warp pays for the exchange of the sum and of the largest number once, whatever its threads keep: so it removes
// half of these shuffles and barriers (counter: instructions executed). All loads of a thread start before the first
// one is needed, which leaves as many bytes on their way.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::fewer_warps {

constexpr int kLanes = kBlockColumns / kColumns, kPacks = 2;
constexpr int kMost = kMostThreads / kPacks, kBlocksAtOnce = 2;

template <Format format, bool kBlocks>
__global__ void __launch_bounds__(kMost, kBlocksAtOnce) row_kernel(const QuantizedCall c, bool aligned) {
  __shared__ SumAndMost in_warps[32];
  const int64_t row_begin = blockIdx.x * c.cols;
  const auto first = [&](int v) { return int64_t{threadIdx.x + v * blockDim.x} * kColumns; };
  const auto columns = [&](int v) { return c.cols - first(v); };
  const auto vector = [&](int v) { return aligned && columns(v) > 0; };
  Pack kept[kPacks], added[kPacks], weight[kPacks];
#pragma unroll
  for (int v = 0; v < kPacks; ++v) {
    kept[v] = load_pack(c.x + row_begin + first(v), vector(v), columns(v));
    added[v] = c.residual ? load_pack(c.residual + row_begin + first(v), vector(v), columns(v)) : Pack{};
    weight[v] = c.weight ? load_pack(c.weight + first(v), vector(v), columns(v)) : Pack{};
  }
  Eight eight[kPacks];
  SumAndMost own = {};
  float most[kPacks];
#pragma unroll
  for (int v = 0; v < kPacks; ++v) {
#pragma unroll
    for (int k = 0; k < kColumns; ++k) {
      const float value = __bfloat162float(kept[v].values[k]);
      if (c.residual) kept[v].values[k] = __float2bfloat16(value + __bfloat162float(added[v].values[k]));
      eight[v].product[k] =
          __bfloat162float(kept[v].values[k]) * (c.weight ? __bfloat162float(weight[v].values[k]) : 1.0f);
    }
    eight[v].kept = kept[v];
    const SumAndMost of_pack = sum_and_most(eight[v]);
    own = {own.sum + of_pack.sum, fmaxf(own.most, of_pack.most)};
    most[v] = of_pack.most;
  }
  if (c.residual_out) {
#pragma unroll
    for (int v = 0; v < kPacks; ++v) store_pack(c.residual_out + row_begin + first(v), kept[v], vector(v), columns(v));
  }
  SumAndMost row;
  if constexpr (kBlocks) {
#pragma unroll
    for (int v = 0; v < kPacks; ++v)
      for (int mask = kLanes / 2; mask > 0; mask /= 2)
        most[v] = fmaxf(most[v], __shfl_xor_sync(0xffffffffu, most[v], mask));
    row = {block_sum(own.sum, &in_warps[0].sum), 0.0f};
  } else {
    row = block_sum_and_most(own, in_warps);
  }
  const float rstd = rstd_of(c, row.sum);
#pragma unroll
  for (int v = 0; v < kPacks; ++v) {
    const float scale = scale_of<format>(c, __bfloat162float(norm_of(kBlocks ? most[v] : row.most, rstd)));
    store_eight<format>(c, row_begin + first(v), eight[v], rstd, scale, vector(v), columns(v));
    const bool writes = kBlocks ? threadIdx.x % kLanes == 0 && columns(v) > 0 : threadIdx.x == 0 && v == 0;
    const int64_t block = kBlocks ? (threadIdx.x + v * blockDim.x) / kLanes : 0;
    if (writes && c.scales != nullptr) c.scales[block * c.rows + blockIdx.x] = scale;
  }
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  with_format(call.format, [&](auto format) {
    const auto kernel =
        call.blocks ? row_kernel<decltype(format)::value, true> : row_kernel<decltype(format)::value, false>;
    const auto threads = static_cast<unsigned>(blocks_for(call.cols, kPacks * kColumns * 32) * 32);
    kernel<<<blocks, threads, 0, stream>>>(call, takes_vectors(call));
  });
}

inline const Stage<RmsNormQuantized> stage{
    "07_fewer_warps", "16 columns per thread", launch, {0, RmsNormQuantized::refuses_beyond_8192}};

}  // namespace ladder::quantized::fewer_warps
