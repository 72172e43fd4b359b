// The formats of llama.cpp's q4_0 and q8_1, bit for bit, and how numbers become blocks of them, on the host.
//
// A block is 32 neighbouring numbers of a row with one scale d, a float16, which is kept as its bits here. Source:
// ggml-common.h and quantize_row_q4_0_ref and quantize_row_q8_1_ref of ggml-quants.c, in github.com/ggml-org/ggml.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/types.h"

namespace ladder {

constexpr int kBlock = 32;  // numbers in a block of either format

// Weights: number i is d · (q - 8). The 4 bits q of number i are the low nibble of qs[i], those of number i + 16 the
// high nibble. 18 bytes, so that a block in an array is aligned to 2 bytes and no more.
struct block_q4_0 {
  uint16_t d;
  uint8_t qs[kBlock / 2];
};
static_assert(sizeof(block_q4_0) == 18 && alignof(block_q4_0) == 2, "as in llama.cpp");

// Activations: number i is d · qs[i]. s is d times the sum of all qs, rounded to float16; see formats/README.md of the
// ladder for what it is good for, and why no stage uses it.
struct alignas(4) block_q8_1 {
  uint16_t d, s;
  int8_t qs[kBlock];
};
static_assert(sizeof(block_q8_1) == 36 && alignof(block_q8_1) == 4, "as in llama.cpp");

// The number that is farthest from zero becomes -8, so that one of the 16 values is not wasted on a sign: the scale may
// be negative. q is x / d + 8.5 cut off to a whole number; product and sum are rounded to float32 one after the other.
inline block_q4_0 quantized_q4_0(const float* x) {
  float farthest = 0.0f;
  for (int i = 0; i < kBlock; ++i)
    if (std::abs(x[i]) > std::abs(farthest)) farthest = x[i];
  const float d = farthest / -8.0f;
  const float inverse = std::abs(d) < 0x1p-126f ? 0.0f : 1.0f / d;  // the inverse of a subnormal number may be infinite
  const auto nibble = [=](float value) {
    const float scaled = value * inverse;
    return static_cast<uint8_t>(std::min(15, static_cast<int>(scaled + 8.5f)));
  };
  block_q4_0 block;
  block.d = Float16::from(d);
  for (int i = 0; i < kBlock / 2; ++i)
    block.qs[i] = static_cast<uint8_t>(nibble(x[i]) | nibble(x[i + kBlock / 2]) << 4);
  return block;
}

// The number that is farthest from zero becomes 127 or -127. Halves are rounded away from zero.
inline block_q8_1 quantized_q8_1(const float* x) {
  float most = 0.0f;
  for (int i = 0; i < kBlock; ++i) most = std::max(most, std::abs(x[i]));
  const float d = most / 127.0f;
  const float inverse = d < 0x1p-126f ? 0.0f : 1.0f / d;
  block_q8_1 block;
  int sum = 0;
  for (int i = 0; i < kBlock; ++i) {
    block.qs[i] = static_cast<int8_t>(std::round(x[i] * inverse));
    sum += block.qs[i];
  }
  block.d = Float16::from(d);
  block.s = Float16::from(static_cast<float>(sum) * d);
  return block;
}

// The whole number that 4 bits stand for.
inline int weight_of(const block_q4_0& block, int i) {
  const int byte = block.qs[i % (kBlock / 2)];
  return (i < kBlock / 2 ? byte & 15 : byte >> 4) - 8;
}

}  // namespace ladder
