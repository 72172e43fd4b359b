// 07_vectorized: 06_registers with the eight columns of a thread side by side: 16 bytes per access of a 16-bit type,
// two such accesses for float.
//
// It removes seven of eight load and store instructions, and the address arithmetic of each (counters: global load
// requests; instructions executed). Rows that do not begin at a multiple of 16 bytes, or do not end at one, are read
// element by element. It leaves: a block requests its next row only after it has written the one before.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "assignment1/rms_norm/backward/shared.cuh"

namespace ladder::backward::vectorized {

template <class T>
__global__ void __launch_bounds__(kMostThreads) gradients_kernel(const Tensors<T> t, bool aligned) {
  __shared__ float2 warp_sums[2][32];
  const int64_t first = int64_t{threadIdx.x} * kColumns, columns = t.cols - first;
  const bool vector = aligned && columns > 0;
  const Pack<float> factor = weight_factors(t, first, vector, columns);
  Pack<float> partial = {};
  int turn = 0;
  for (int64_t row = blockIdx.x; row < t.rows; row += gridDim.x, turn ^= 1) {
    const int64_t begin = row * t.cols + first;
    const Pack<T> dy = load_pack(t.dy + begin, vector, columns), x = load_pack(t.x + begin, vector, columns);
    const Pack<T> dsum = t.dsum == nullptr ? Pack<T>{} : load_pack(t.dsum + begin, vector, columns);
    const RowFactors row_is = row_factors(t, row, block_sums(sums_of(dy, x, factor), warp_sums[turn]));
    store_pack(t.dx + begin, gradients(dy, x, dsum, factor, row_is, partial), vector, columns);
  }
  if (t.dweight != nullptr) store_pack(t.partial + blockIdx.x * t.cols + first, partial, vector, columns);
}

inline void launch(const BackwardCall& call, cudaStream_t stream) {
  dispatch(call.dtype, [&](auto* type) {
    const auto t = tensors_of(call, type);
    const unsigned threads = threads_for(t.cols);
    const int64_t most = resident_blocks(gradients_kernel<std::decay_t<decltype(*type)>>, static_cast<int>(threads));
    const auto blocks = static_cast<unsigned>(std::min({t.rows, most, kMostPartials}));
    if (blocks > 0) gradients_kernel<<<blocks, threads, 0, stream>>>(t, takes_vectors(t));
    if (t.dweight == nullptr) return;
    partial_sums_kernel<<<static_cast<unsigned>(blocks_for(t.cols, kTile)), dim3(kTile, kTile), 0, stream>>>(t, blocks);
  });
}

inline const Stage<RmsNormBackward> stage{"07_vectorized",
                                          "eight columns side by side, 16 bytes per access",
                                          launch,
                                          {0, RmsNormBackward::refuses_beyond_8192}};

}  // namespace ladder::backward::vectorized
