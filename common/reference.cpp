#include "common/reference.h"

#include <algorithm>

#include "common/parallel.h"

namespace ladder {
namespace {

// Eight partial sums: float64 has digits to spare for any order, and the additions need not wait for each other.
double sum_of_squares(const float* x, int64_t count) {
  double sums[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; ++k) sums[k] += static_cast<double>(x[i + k]) * static_cast<double>(x[i + k]);
  for (; i < count; ++i) sums[0] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace

std::vector<double> mean_squares(const float* input, int64_t rows, int64_t cols) {
  std::vector<double> result(rows);
  parallel_for(rows, std::max<int64_t>(1, (1 << 16) / cols), [&](int, int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      result[row] = sum_of_squares(input + row * cols, cols) / static_cast<double>(cols);
  });
  return result;
}

}  // namespace ladder
