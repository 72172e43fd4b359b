// The oracle: RMSNorm in float64, and how far a correct float32 kernel may be from it.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace ladder {

// The largest relative error of one element that a correct float32 kernel can show, u = 2^-24 the unit roundoff.
//   x², division by cols, + eps      u + 2u + u, halved by the square root            2 u
//   rsqrtf (2 ulp in CUDA's table), or sqrtf and a division, which are better         4 u
//   · rstd, · weight                                                                  2 u
//   the sum of cols squares, halved by the square root:
//     in whatever order, terms being positive, at most (cols - 1) u;
//     with roundings that are independent of each other, 4 sqrt(cols) u (Higham and Mary 2019, A new approach to
//     probabilistic rounding error analysis, λ = 4: under one sum in a thousand exceeds it);
//     and what is not independent: an addend smaller than u times the running sum is lost whole. With x spread evenly
//     over ±√3 of its root mean square, as fill_input makes it, adding one by one loses less than 0.08 (cols u)^1.5.
//   The lost part counts up to a hundredth: above four million columns, adding one by one is no answer any more.
inline double tolerance(int64_t cols) {
  const double u = 0x1p-24, n = static_cast<double>(cols);
  const double likely = 4.0 * std::sqrt(n) * u + std::fmin(0.08 * std::pow(n * u, 1.5), 0.01);
  return 8.0 * u + 0.5 * std::fmin((n - 1.0) * u, likely);
}

// mean(x²) of each row of a rows × cols matrix, summed in float64.
std::vector<double> mean_squares(const float* input, int64_t rows, int64_t cols);

// One normalization problem and its answer, computed element by element where it is compared: nothing of the matrix's
// size is stored in float64.
struct Reference {
  const float* input;   // rows × cols
  const float* weight;  // cols, or nullptr
  const double* mean_square;
  int64_t rows, cols;
  float eps;

  double rstd(int64_t row) const { return 1.0 / std::sqrt(mean_square[row] + static_cast<double>(eps)); }
  double at(int64_t row, int64_t col) const {
    return static_cast<double>(input[row * cols + col]) * rstd(row) * (weight ? static_cast<double>(weight[col]) : 1.0);
  }
};

}  // namespace ladder
