// What a right answer is: RMSNorm in float64, with the roundings that the header's comments promise.
#pragma once
#include <cstdint>
#include <cstring>

#include "tests/header/combination.h"

namespace header_test {

// An element of a buffer on the host.
double read(Type type, const void* elements, int64_t index);
void write(Type type, void* elements, int64_t index, float value);  // rounded to nearest even
float rounded(Type type, float value);                              // the same, as a float

// The largest relative error of what a correct kernel computes in float32 before it rounds to the output's type, with
// u = 2^-24 the unit roundoff: that of the project's oracle (common/reference.h) and 1 u for weight_offset + weight. In
// place of cols stands the longest chain of additions that a square passes through. At least 32 threads share a row,
// so that is cols / 32 in a thread, then 5 in a warp, at most 32 warps and 8 to 128 blocks by fours: 64 covers them.
double float_error(int64_t cols);

// The row's 1 / sqrt(mean(x²) + eps), x being what is normalized.
double rstd_of(Type type, const void* row, int64_t cols, float eps);

// Every value between the two is right: they differ by what float32 arithmetic may lose, mostly not at all. NaN asks
// for NaN.
struct Bounds {
  float low, high;
  bool hold(double got) const { return low != low ? got != got : got >= low && got <= high; }
};

// The element whose normalized value is exactly `normalized`. No weight: weight is nullptr.
Bounds bounds_of(double normalized, const double* weight, Type output, const Options& options, double error);

}  // namespace header_test
