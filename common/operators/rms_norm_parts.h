// What the oracles and the inputs of float32 and of typed RMSNorm share.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/parallel.h"
#include "common/random.h"
#include "common/types.h"

namespace ladder::rms_norm {

// The largest relative error of one element that a correct float32 kernel can show.
double tolerance(int64_t cols);

// mean(x²) of each row, in float64.
std::vector<double> mean_squares(const float* x, int64_t rows, int64_t cols);

// Of wrong elements that are all `factor` times what is right: what that says of the row's sum. "" if nothing.
std::string cause_of(double factor);

using Floats = std::unique_ptr<float[]>;
Floats as_floats(Type type, const void* from, int64_t count);

// Uniform in ±1 about 0.1, with three columns of up to 16 times that, including the last, so that a sum that lacks one
// of them is visibly wrong. Rows differ in scale.
template <class T, size_t kScales>
void fill_rows(void* to, int64_t rows, int64_t cols, uint64_t seed, const float (&scales)[kScales]) {
  auto* stored = static_cast<typename T::Stored*>(to);
  parallel_for_rows(rows, cols, [=, &scales](int64_t row, int64_t first, int64_t last) {
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(row));
    const float scale = scales[row % static_cast<int64_t>(kScales)];
    for (int64_t col = first; col < last; ++col)
      stored[row * cols + col] = T::from((0.5f * uniform(hash32(key, col)) + 0.1f) * scale);
    for (const int64_t col : {int64_t{0}, static_cast<int64_t>(key % static_cast<uint64_t>(cols)), cols - 1})
      if (col >= first && col < last) stored[row * cols + col] = T::from((key >> 40 & 1 ? 8.0f : -16.0f) * scale);
  });
}

}  // namespace ladder::rms_norm
