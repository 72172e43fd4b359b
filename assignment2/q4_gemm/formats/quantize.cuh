// Kernels that make blocks of q4_0 and q8_1 from floats, and repack weights. They write the bits that the functions of
// common/operators/q4_blocks.h write on the host.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/launch.h"
#include "common/operators/q4_blocks.h"

namespace ladder::q4_gemm {

constexpr int kQuantizeThreads = 256;

// A warp makes a block, a lane has one number. On equal magnitudes the number with the lower index counts, as on the
// host. __fmul_rn and __fadd_rn keep the compiler from fusing them, which would round once where the format rounds
// twice.
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_q4_0_kernel(const float* __restrict__ x, block_q4_0* __restrict__ to, int64_t blocks) {
  const int lane = threadIdx.x % 32;
  const int64_t b = (int64_t{blockIdx.x} * kQuantizeThreads + threadIdx.x) / 32;
  if (b >= blocks) return;
  const float value = x[b * kBlock + lane];
  float farthest = value;
  int index = lane;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other = __shfl_xor_sync(0xffffffffu, farthest, mask);
    const int its_index = __shfl_xor_sync(0xffffffffu, index, mask);
    const bool is_farther = fabsf(other) > fabsf(farthest);
    if (is_farther || (fabsf(other) == fabsf(farthest) && its_index < index)) farthest = other, index = its_index;
  }
  const float d = farthest / -8.0f;
  const float inverse = fabsf(d) < 0x1p-126f ? 0.0f : __fdiv_rn(1.0f, d);
  const int nibble = min(15, static_cast<int>(__fadd_rn(__fmul_rn(value, inverse), 8.5f)));
  const int high = __shfl_down_sync(0xffffffffu, nibble, 16);
  if (lane < kBlock / 2) to[b].qs[lane] = static_cast<uint8_t>(nibble | high << 4);
  if (lane == 0) to[b].d = __half_as_ushort(__float2half_rn(d));
}

__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_q8_1_kernel(const float* __restrict__ x, block_q8_1* __restrict__ to, int64_t blocks) {
  const int lane = threadIdx.x % 32;
  const int64_t b = (int64_t{blockIdx.x} * kQuantizeThreads + threadIdx.x) / 32;
  if (b >= blocks) return;
  const float value = x[b * kBlock + lane];
  float most = fabsf(value);
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, mask));
  const float d = __fdiv_rn(most, 127.0f);
  const float inverse = d < 0x1p-126f ? 0.0f : __fdiv_rn(1.0f, d);
  const int number = static_cast<int>(roundf(__fmul_rn(value, inverse)));
  int sum = number;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  to[b].qs[lane] = static_cast<int8_t>(number);
  if (lane > 0) return;
  to[b].d = __half_as_ushort(__float2half_rn(d));
  to[b].s = __half_as_ushort(__float2half_rn(__fmul_rn(static_cast<float>(sum), d)));
}

// The same bits in two arrays: 16 bytes a block, then 2 bytes a block.
__global__ void __launch_bounds__(kQuantizeThreads)
    repack_kernel(const block_q4_0* __restrict__ from, uint4* __restrict__ qs, uint16_t* __restrict__ d,
                  int64_t blocks) {
  const int64_t b = int64_t{blockIdx.x} * kQuantizeThreads + threadIdx.x;
  if (b >= blocks) return;
  const auto* halves = reinterpret_cast<const uint16_t*>(from[b].qs);
  uint32_t words[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) words[j] = halves[2 * j] | static_cast<uint32_t>(halves[2 * j + 1]) << 16;
  qs[b] = make_uint4(words[0], words[1], words[2], words[3]);
  d[b] = from[b].d;
}

// Blocks of 32 floats each, which are aligned as floats are.
inline void quantize(const float* x, block_q4_0* to, int64_t blocks, cudaStream_t stream) {
  if (blocks == 0) return;
  const auto grid = static_cast<unsigned>(blocks_for(blocks, kQuantizeThreads / 32));
  quantize_q4_0_kernel<<<grid, kQuantizeThreads, 0, stream>>>(x, to, blocks);
}
inline void quantize(const float* x, block_q8_1* to, int64_t blocks, cudaStream_t stream) {
  if (blocks == 0) return;
  const auto grid = static_cast<unsigned>(blocks_for(blocks, kQuantizeThreads / 32));
  quantize_q8_1_kernel<<<grid, kQuantizeThreads, 0, stream>>>(x, to, blocks);
}

// qs is aligned to 16 bytes. Repacked weights take as many bytes as the blocks.
inline void repack(const block_q4_0* from, uint4* qs, uint16_t* d, int64_t blocks, cudaStream_t stream) {
  if (blocks == 0) return;
  const auto grid = static_cast<unsigned>(blocks_for(blocks, kQuantizeThreads));
  repack_kernel<<<grid, kQuantizeThreads, 0, stream>>>(from, qs, d, blocks);
}

}  // namespace ladder::q4_gemm
