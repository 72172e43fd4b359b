#include "tests/header/oracle.h"

#include <algorithm>
#include <cmath>

#include "common/reference.h"

namespace header_test {
namespace {

template <class To, class From>
To bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

// g++'s own half, so that the headers under test do not judge themselves.
float from_half(uint16_t half) { return static_cast<float>(bits<_Float16>(half)); }
uint16_t to_half(float value) { return bits<uint16_t>(static_cast<_Float16>(value)); }

float from_bfloat16(uint16_t value) { return bits<float>(static_cast<uint32_t>(value) << 16); }
uint16_t to_bfloat16(float value) {
  if (std::isnan(value)) return 0x7fff;
  const uint32_t word = bits<uint32_t>(value);
  return static_cast<uint16_t>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
}

template <class T>
T element(const void* elements, int64_t index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(elements) + index * sizeof(T), sizeof(T));
  return value;
}

float read_float(Type type, const void* elements, int64_t index) {
  if (type == Type::float32) return element<float>(elements, index);
  const uint16_t value = element<uint16_t>(elements, index);
  return type == Type::float16 ? from_half(value) : from_bfloat16(value);
}

}  // namespace

double read(Type type, const void* elements, int64_t index) { return read_float(type, elements, index); }

void write(Type type, void* elements, int64_t index, float value) {
  if (type == Type::float32) {
    std::memcpy(static_cast<float*>(elements) + index, &value, sizeof value);
  } else {
    const uint16_t narrow = type == Type::float16 ? to_half(value) : to_bfloat16(value);
    std::memcpy(static_cast<uint16_t*>(elements) + index, &narrow, sizeof narrow);
  }
}

float rounded(Type type, float value) {
  return type == Type::float32   ? value
         : type == Type::float16 ? from_half(to_half(value))
                                 : from_bfloat16(to_bfloat16(value));
}

double float_error(int64_t cols) {
  const int64_t chain = std::min(cols, (cols + 31) / 32 + 64);
  return ladder::tolerance(chain) + 0x1p-24;
}

double rstd_of(Type type, const void* row, int64_t cols, float eps) {
  double sums[4] = {};
  int64_t i = 0;
  const auto square = [&](int64_t at) {
    const double value = read_float(type, row, at);
    return value * value;
  };
  for (; i + 4 <= cols; i += 4)
    for (int k = 0; k < 4; ++k) sums[k] += square(i + k);
  for (; i < cols; ++i) sums[0] += square(i);
  const double sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return 1.0 / std::sqrt(sum / static_cast<double>(cols) + static_cast<double>(eps));
}

// Rounding is monotonic, so the bounds of the exact value give the bounds of the rounded one, at every later step too.
Bounds bounds_of(double normalized, const double* weight, Type output, const Options& options, double error) {
  const auto around = [&](double value, double factor) {
    if (!std::isfinite(value) || value == 0.0) return Bounds{static_cast<float>(value), static_cast<float>(value)};
    const double slack = std::abs(value) * error + 0x1p-150 * (1.0 + std::abs(factor));  // the latter: subnormal
    return Bounds{rounded(output, static_cast<float>(value - slack)),
                  rounded(output, static_cast<float>(value + slack))};
  };
  if (weight == nullptr) return around(normalized, 0.0);
  const double factor = static_cast<double>(options.weight_offset) + *weight;
  if (!options.llama) return around(normalized * factor, factor);

  const Bounds first = around(normalized, 0.0);
  const float rounded_factor = static_cast<float>(factor);  // float + float in float64 is exact, or nearly
  const float a = rounded(output, first.low * rounded_factor), b = rounded(output, first.high * rounded_factor);
  return {std::min(a, b), std::max(a, b)};
}

}  // namespace header_test
