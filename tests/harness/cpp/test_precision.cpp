// RMSNorm with sums of 16 bits: how far off a result may be, which faults are seen, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/operators/rms_norm_precision.h"

using namespace ladder;

namespace {

// Through the host's memory and in float64, times a factor; kRounded: each addition is rounded to the format, one after
// the other.
template <class T, class Host, int kPerMille, bool kRounded = false>
void pretend(const T* x, const T* weight, T* y, int64_t rows, int64_t cols, float eps, cudaStream_t) {
  using Stored = typename Host::Stored;
  std::vector<Stored> from(rows * cols), factors(cols, Host::from(1.0f)), to(rows * cols);
  const auto bytes = [](const std::vector<Stored>& of) { return of.size() * sizeof(Stored); };
  CUDA_CHECK(cudaMemcpy(from.data(), x, bytes(from), cudaMemcpyDeviceToHost));
  if (weight) CUDA_CHECK(cudaMemcpy(factors.data(), weight, bytes(factors), cudaMemcpyDeviceToHost));
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0.0;
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i) {
      sum += Host::value(from[i]) * Host::value(from[i]);
      if (kRounded) sum = Host::value(Host::from(static_cast<float>(sum)));
    }
    const double rstd = 1.0 / std::sqrt(sum / static_cast<double>(cols) + static_cast<double>(eps));
    for (int64_t col = 0; col < cols; ++col) {
      const double exact = Host::value(from[row * cols + col]) * rstd * Host::value(factors[col]);
      to[row * cols + col] = Host::from(static_cast<float>(exact * (1.0 + 0.001 * kPerMille)));
    }
  }
  CUDA_CHECK(cudaMemcpy(y, to.data(), bytes(to), cudaMemcpyHostToDevice));
}

template <class Op, class T, class Host, int kPerMille, bool kRounded = false>
std::string failure() {
  const Stage<Op> stage{"01_host", "on the host", pretend<T, Host, kPerMille, kRounded>, {0, Op::refuses}};
  return EdgeCases(Op::get(), true, 1).check(stage).failure;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the exact result, rounded once, is right for every type and sum") {
  CHECK(failure<RmsNormF32, float, Float32, 0>() == "");
  CHECK(failure<RmsNormF16, __half, Float16, 0>() == "");
  CHECK(failure<RmsNormF16F16, __half, Float16, 0>() == "");
  CHECK(failure<RmsNormBf16, __nv_bfloat16, Bfloat16, 0>() == "");
  CHECK(failure<RmsNormBf16Bf16, __nv_bfloat16, Bfloat16, 0>() == "");
}

TEST_CASE("with float32 sums one part in a thousand is seen, with 16-bit sums what their roundings do not explain") {
  CHECK(says(failure<RmsNormF32, float, Float32, 1>(), "elements wrong"));
  CHECK(says(failure<RmsNormF16, __half, Float16, 1>(), "elements wrong"));
  CHECK(says(failure<RmsNormF16F16, __half, Float16, 5>(), "elements wrong"));
  CHECK(says(failure<RmsNormBf16, __nv_bfloat16, Bfloat16, 8>(), "elements wrong"));
  CHECK(says(failure<RmsNormBf16Bf16, __nv_bfloat16, Bfloat16, 40>(), "elements wrong"));
}

TEST_CASE("a sum that is rounded at every element is not that of a tree") {
  CHECK(says(failure<RmsNormF16, __half, Float16, 0, true>(), "elements wrong"));  // and its rows overflow float16
  CHECK(says(failure<RmsNormF16F16, __half, Float16, 0, true>(), "elements wrong"));
  CHECK(says(failure<RmsNormBf16Bf16, __nv_bfloat16, Bfloat16, 0, true>(), "elements wrong"));
}

TEST_CASE("no row that float16 sums are checked on overflows") {
  for (const Shape& shape : RmsNormF16F16::get().edge_cases(true)) {
    const Case c(RmsNormF16F16::get(), shape, 1);
    for (int64_t row = 0; row < shape[0]; ++row) {
      double sum = 0.0;
      for (int64_t i = row * shape[1]; i < (row + 1) * shape[1]; ++i) {
        const double x = element(Type::float16, c.inputs[0].data(), i);
        sum += x * x;
      }
      CHECK(sum < 0.9 * 65504.0);
    }
  }
}

TEST_CASE("rows whose sums their type cannot hold are refused") {
  CHECK(RmsNormF16F16::refuses({{1, 65504}}) == nullptr);
  CHECK(says(RmsNormF16F16::refuses({{1, 65505}}), "give fewer cols"));
  CHECK(RmsNormBf16Bf16::refuses({{1, 65536}}) == nullptr);
  CHECK(says(RmsNormBf16Bf16::refuses({{1, 65537}}), "give fewer cols"));
  CHECK(RmsNormF16::refuses({{1, 65537}}) == nullptr);
  CHECK(says(RmsNormF32::refuses({{int64_t{1} << 31, 1}}), "give fewer rows"));
}

TEST_CASE("a float becomes the nearest float16, and the even one of two that are as near") {
  const auto from = [](double value) { return unsigned{Float16::from(static_cast<float>(value))}; };
  unsigned wrong = 0;
  for (unsigned half = 0; half < 0x7c00; ++half) {
    const double exponent = half >> 10 ? half >> 10 : 1, digits = (half & 0x3ff) + (half >> 10 ? 1024 : 0);
    const double unit = std::ldexp(1.0, static_cast<int>(exponent) - 25);
    const float value = static_cast<float>(digits * unit), middle = static_cast<float>((digits + 0.5) * unit);
    wrong += from(value) != half || from(-value) != (half | 0x8000);
    wrong += from(middle) != half + half % 2 || from(-middle) != ((half + half % 2) | 0x8000);
    wrong += from(std::nextafter(middle, 0.0f)) != half || from(std::nextafter(middle, 1e6f)) != half + 1;
  }
  CHECK(wrong == 0);
  CHECK(from(INFINITY) == 0x7c00);
  CHECK(from(-3e38) == 0xfc00);
  CHECK(std::isnan(Float16::value(Float16::from(NAN))));
  CHECK(std::isnan(Float16::value(Float16::from(bits_as<float>(0xff800001u)))));
}
