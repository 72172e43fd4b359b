// 05_packed: 04_registers with a thread's eight columns side by side: 16 bytes per load, two numbers per conversion
// (cvt.rn.satfinite.e4m3x2), and 8 bytes of codes per store.
//
// It removes seven of eight load and store instructions, and half of the conversions (counters: global load requests;
// global store requests; instructions executed). Rows that are not aligned are read and written one by one.
// It leaves: the codes of a block of columns wait for the largest number of the whole row.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "assignment1/rms_norm/quantized/shared.cuh"

namespace ladder::quantized::packed {

template <Format format>
__global__ void __launch_bounds__(kMostThreads) row_kernel(const QuantizedCall c, bool aligned) {
  __shared__ SumAndMost in_warps[32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = c.cols - first;
  const int64_t begin = blockIdx.x * c.cols + first;
  const bool vector = aligned && columns > 0;
  const Eight eight = load_eight(c, begin, first, vector, columns);
  const SumAndMost row = block_sum_and_most(sum_and_most(eight), in_warps);
  const float rstd = rstd_of(c, row.sum);
  const float scale = scale_of<format>(c, __bfloat162float(norm_of(row.most, rstd)));
  store_eight<format>(c, begin, eight, rstd, scale, vector, columns);
  if (threadIdx.x == 0 && c.scales != nullptr) c.scales[blockIdx.x] = scale;
}

inline void launch(const QuantizedCall& call, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>(call.rows);
  if (blocks == 0) return;
  with_format(call.format, [&](auto format) {
    row_kernel<decltype(format)::value><<<blocks, threads_for(call.cols), 0, stream>>>(call, takes_vectors(call));
  });
}

inline const Stage<RmsNormQuantized> stage{
    "05_packed", "16-byte loads, packed conversions", launch, {0, RmsNormQuantized::refuses_blocks_and_beyond_8192}};

}  // namespace ladder::quantized::packed
