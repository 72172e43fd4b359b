#include "common/inputs.h"

#include <algorithm>
#include <cmath>

#include "common/parallel.h"

namespace ladder {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014).
uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// The finalizer of MurmurHash3's 32-bit form: compilers vectorize it.
uint32_t mix32(uint32_t x) {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

// Uniform in [-2, 2), a multiple of 2^-22: exact, so fused and separate multiply-adds agree.
float uniform(uint32_t hash) { return static_cast<float>(static_cast<int32_t>(hash) >> 8) * 0x1p-22f; }

float row_scale(int64_t row) {
  constexpr float scales[8] = {1.0f, 1e-3f, 1e3f, 0.5f, 2e-3f, 0.0f, 3.0f, 0.03125f};
  return scales[row % 8];
}

}  // namespace

void fill_input(float* input, int64_t rows, int64_t cols, uint64_t seed) {
  parallel_for(rows * cols, 1 << 16, [=](int, int64_t begin, int64_t end) {
    while (begin < end) {
      const int64_t row = begin / cols, first = begin % cols, last = std::min(cols, first + end - begin);
      const float scale = row_scale(row);
      const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(row));
      for (int64_t col = first; col < last; ++col) {
        const uint32_t low = static_cast<uint32_t>(key) + static_cast<uint32_t>(col);
        const uint32_t high = static_cast<uint32_t>(key >> 32) ^ static_cast<uint32_t>(col >> 32);
        input[row * cols + col] = (uniform(mix32(mix32(low) ^ high)) + 0.25f) * scale;
      }
      const float heavy = std::max(1.0f, 0.25f * std::sqrt(static_cast<float>(cols)));
      if (last == cols) input[row * cols + cols - 1] = (key & 1 ? heavy : -heavy) * scale;
      begin += last - first;
    }
  });
}

void fill_weight(float* weight, int64_t cols, uint64_t seed) {
  const uint64_t key = mix64(seed ^ 0x7765696768740000u);
  for (int64_t col = 0; col < cols; ++col) {
    const uint64_t hash = mix64(key + static_cast<uint64_t>(col));
    const float magnitude = 0.5f + static_cast<float>(hash >> 40) * 0x1p-24f;
    weight[col] = hash & 1 ? magnitude : -magnitude;
  }
}

}  // namespace ladder
