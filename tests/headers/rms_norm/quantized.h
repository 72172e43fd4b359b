// The norms that end in 8 bits, against float64: formats, scales, lengths that hurt, strides, heads, pointers that
// begin somewhere, and the norm as a second output.
//
// What the kernel computes in float32 may differ from float64 in its last bits. So a reference is an interval, and a
// code must be one of those to which the numbers of the interval round: nearly always it is one code. Where all of
// float32 is exact (numbers of a row that are 1 or -1, and eps = 0), it is one code always.
#pragma once
#include <rms_norm/quantize.cuh>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/text.h"
#include "tests/headers/rms_norm/elements.h"
#include "tests/headers/rms_norm/groups.h"

namespace header_test {

using AddQuantized = void (*)(std::vector<Group>&, bool quick);
std::vector<AddQuantized>& quantized_forms();

namespace {

using ladder::text;

// --- The formats, from their definitions -----------------------------------------------------------------------------

template <class Q>
struct Codes {
  static constexpr bool kInt = std::is_same_v<Q, int8_t>, kE4m3 = std::is_same_v<Q, __nv_fp8_e4m3>;
  static constexpr const char* kName = kInt ? "int8" : kE4m3 ? "e4m3" : "e5m2";
  static constexpr double kMost = kInt ? 127 : kE4m3 ? 448 : 57344;
  static constexpr uint8_t kNan = kInt ? 0 : 0x7f;
  static float least_scale() { return kInt ? std::ldexp(1.0f, -23) : 1.0f / (static_cast<float>(kMost) * 512.0f); }

  // The magnitude of a float8 code: of 0 to 126, or to 123.
  static double magnitude(int code) {
    constexpr int kDigits = kE4m3 ? 3 : 2, kBias = kE4m3 ? 7 : 15;
    const int exponent = code >> kDigits, fraction = code & ((1 << kDigits) - 1);
    const int whole = exponent == 0 ? fraction : fraction + (1 << kDigits);
    return std::ldexp(whole, std::max(exponent, 1) - kBias - kDigits);
  }
  static constexpr int kLastCode = kE4m3 ? 0x7e : 0x7b;

  static uint8_t nearest(double x) {
    if (std::isnan(x)) return kNan;
    if constexpr (kInt) {
      return static_cast<uint8_t>(static_cast<int>(std::nearbyint(std::clamp(x, -128.0, 127.0))));
    } else {
      const uint8_t sign = std::signbit(x) ? 0x80 : 0;
      x = std::abs(x);
      int low = 0, high = kLastCode;  // magnitude(low) <= x
      if (x >= magnitude(high)) return static_cast<uint8_t>(sign | high);
      while (high - low > 1) (magnitude((low + high) / 2) <= x ? low : high) = (low + high) / 2;
      const double below = x - magnitude(low), above = magnitude(high) - x;
      const bool up = above < below || (above == below && high % 2 == 0);
      return static_cast<uint8_t>(sign | (up ? high : low));
    }
  }
  // The codes in the order of their numbers.
  static int place(uint8_t code) {
    if constexpr (kInt) return static_cast<int8_t>(code);
    return code & 0x80 ? -(code & 0x7f) : code & 0x7f;
  }
};

struct Interval {
  double low, high;
  Interval times(double a, double b) const {  // by one number of [a, b]
    const auto [least, most] = std::minmax({low * a, low * b, high * a, high * b});
    return {least, most};
  }
  Interval wider(double relative) const { return {low - relative * std::abs(low), high + relative * std::abs(high)}; }
  double most() const { return std::max(std::abs(low), std::abs(high)); }
  double least() const { return low <= 0 && high >= 0 ? 0 : std::min(std::abs(low), std::abs(high)); }
};
template <class X>
Interval rounded(Interval of) {
  const auto round = [](double x) { return Format<X>::value(Format<X>::from(static_cast<float>(x))); };
  return {round(of.low), round(of.high)};
}

// --- One call
// ----------------------------------------------------------------------------------------------------------

struct QuantizedShape {
  int64_t rows, cols;
  int64_t block = 0;  // or kFixed: one scale of the tensor
  bool llama = false, has_weight = true, has_y = false, by_columns = false, bounded = false;
  int64_t begin = 0;    // of x, residual, y, weight, in elements
  int64_t q_begin = 0;  // of q
  rms_norm::Layout layout = {}, q_layout = {};
};
constexpr int64_t kFixed = -1;

template <class X, class R, class W, class Q>
class QuantizedTrial {
 public:
  static constexpr bool kAdds = !std::is_void_v<R>;
  using RE = std::conditional_t<kAdds, R, X>;
  explicit QuantizedTrial(const QuantizedShape& shape) : s_(shape) {}

  std::string run() {
    std::mt19937 random(7);
    const int64_t blocks = s_.block > 0 ? (s_.cols + s_.block - 1) / s_.block : 1;
    Elements<X> x(span(s_.layout), s_.begin, random), y(span(s_.layout), s_.begin, random);
    Elements<RE> residual(kAdds ? span(s_.layout) : 0, s_.begin, random);
    Elements<W> weight(s_.cols, s_.begin, random);
    // Of different magnitude, and with some large numbers, so that blocks have different scales.
    for (size_t i = 0; i < x.host.size(); ++i)
      x.host[i] = Format<X>::from(static_cast<float>(Format<X>::value(x.host[i]) * (i % 97 == 0 ? 30 : 1 + i % 7)));
    x.copy_in();
    const auto before = residual.host;
    const int64_t lines = s_.by_columns ? blocks : s_.rows, length = s_.by_columns ? (s_.rows + 3) / 4 * 4 : blocks;
    std::vector<uint8_t> codes(span(s_.q_layout) + s_.q_begin + 64, 0xaa);
    std::vector<float> scales(lines * length + 8, -7.0f);
    const float fixed = 0.037f, bound = 1.5f;
    auto q = ladder::allocate<uint8_t>(codes.size());
    auto scale = ladder::allocate<float>(scales.size() + 2);
    const auto copy = [](void* to, const void* from, size_t bytes) {
      CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
    };
    copy(q.get(), codes.data(), codes.size());
    copy(scale.get(), &fixed, 4), copy(scale.get() + 1, &bound, 4);
    copy(scale.get() + 2, scales.data(), 4 * scales.size());

    rms_norm::Quantization how;
    if (s_.block == kFixed)
      how.scale = scale.get();
    else
      how.scales = scale.get() + 2, how.block = s_.block;
    if (s_.bounded) how.upper_bound = scale.get() + 1;
    if (s_.by_columns) how.order = rms_norm::Scales::column_major;
    rms_norm::Options options;
    options.weight_offset = 0.5f;
    options.rounding = s_.llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
    const W* w = s_.has_weight ? weight.data() : nullptr;
    const rms_norm::Tensor<const X> given{x.data(), s_.layout};
    const rms_norm::Tensor<X> norm{s_.has_y ? y.data() : nullptr, s_.layout};
    const rms_norm::Tensor<Q> target{reinterpret_cast<Q*>(q.get()) + s_.q_begin, s_.q_layout};
    cudaError_t error;
    if constexpr (kAdds) {
      const rms_norm::Tensor<R> sum{residual.data(), s_.layout};
      error = rms_norm::fused_add_rms_norm_quantized(given, sum, sum, w, target, how, norm, s_.rows, s_.cols, options);
    } else {
      error = rms_norm::forward_quantized(given, w, target, how, norm, s_.rows, s_.cols, options);
    }
    if (error != cudaSuccess) return name() + ": " + cudaGetErrorString(error);
    CUDA_CHECK(cudaDeviceSynchronize());

    const auto sums = kAdds ? residual.copy_out() : before;
    const auto norms = y.copy_out();
    std::vector<uint8_t> got(codes.size());
    std::vector<float> got_scales(scales.size());
    copy(got.data(), q.get(), got.size());
    copy(got_scales.data(), scale.get() + 2, 4 * got_scales.size());

    int64_t doubtful = 0;
    for (int64_t r = 0; r < s_.rows; ++r) {
      const int64_t from = start(r, s_.layout), to = s_.q_begin + start(r, s_.q_layout);
      double squares = 0;
      std::vector<double> input(s_.cols);
      for (int64_t i = 0; i < s_.cols; ++i) {
        input[i] = x.at(from + i);
        if constexpr (kAdds) {
          const auto sum = Format<R>::from(static_cast<float>(input[i]) +
                                           static_cast<float>(Format<R>::value(before[s_.begin + from + i])));
          if (sums[s_.begin + from + i] != sum) return name() + text(": row %lld: the sum", static_cast<long long>(r));
          input[i] = Format<R>::value(sum);
        }
        squares += input[i] * input[i];
      }
      // Sums of positive numbers, in pairs or of few per thread: their error is some roundings.
      constexpr double kError = 32 * kU;
      const double rstd = 1 / std::sqrt(squares / s_.cols + 1e-6f);
      const auto output = [&](int64_t i) {
        const double factor = s_.has_weight ? 0.5f + weight.at(i) : 1.0;
        Interval of = Interval{rstd, rstd}.wider(kError).times(input[i], input[i]);
        if (s_.llama) of = rounded<X>(of);
        of = of.times(factor, factor).wider(2 * kU);
        return s_.llama ? rounded<X>(of) : of;
      };
      const int64_t width = s_.block > 0 ? s_.block : s_.cols;
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * width, last = std::min(s_.cols, first + width);
        double least = 0, most = 0;
        for (int64_t i = first; i < last; ++i)
          least = std::max(least, output(i).least()), most = std::max(most, output(i).most());
        float used = fixed;
        if (s_.block != kFixed) {
          used = got_scales[s_.by_columns ? b * length + r : r * length + b];
          const auto scale_of = [&](double m) {
            const double bounded = s_.bounded ? std::min(m, double{bound}) : m;
            return std::max(bounded / Codes<Q>::kMost, double{Codes<Q>::least_scale()});
          };
          if (!(used >= scale_of(least) * (1 - kError) && used <= scale_of(most) * (1 + kError)))
            return name() + text(": scale (%lld, %lld) is %.9g, not %.9g to %.9g", static_cast<long long>(r),
                                 static_cast<long long>(b), used, scale_of(least), scale_of(most));
        }
        for (int64_t i = first; i < last; ++i) {
          const Interval of = output(i);
          const Interval quotient = of.times(1 / double{used}, 1 / double{used}).wider(6 * kU);
          const int low = Codes<Q>::place(Codes<Q>::nearest(quotient.low)),
                    high = Codes<Q>::place(Codes<Q>::nearest(quotient.high)), is = Codes<Q>::place(got[to + i]);
          doubtful += low != high;
          if (!(is >= low && is <= high))
            return name() + text(": (%lld, %lld) is %d, not %d to %d of %.9g", static_cast<long long>(r),
                                 static_cast<long long>(i), is, low, high, quotient.low);
          if (!s_.has_y) continue;
          const double value = Format<X>::value(norms[s_.begin + from + i]);
          const Interval allowed = s_.llama ? of : rounded<X>(of.wider(2 * kU));
          if (!(value >= allowed.low && value <= allowed.high))
            return name() + text(": y (%lld, %lld) is %.9g, not %.9g", static_cast<long long>(r),
                                 static_cast<long long>(i), value, of.low);
        }
        if (s_.block != kFixed) scales[s_.by_columns ? b * length + r : r * length + b] = used;
      }
      std::copy_n(got.begin() + to, s_.cols, codes.begin() + to);
      if (s_.has_y) std::copy_n(norms.begin() + s_.begin + from, s_.cols, y.host.begin() + s_.begin + from);
    }
    if (codes != got) return name() + ": q was overrun";
    if (scales != got_scales) return name() + ": scales was overrun";
    if (std::memcmp(norms.data(), y.host.data(), norms.size() * sizeof norms[0]) != 0)
      return name() + ": y was overrun";
    // Quotients of two bfloat16 are ties of float8 now and then.
    if (doubtful > 0.02 * static_cast<double>(s_.rows * s_.cols) + 2)
      return name() + text(": %lld numbers may have two codes", static_cast<long long>(doubtful));
    return "";
  }

 private:
  int64_t stride(const rms_norm::Layout& layout) const {
    return layout.stride == rms_norm::kContiguous ? s_.cols : layout.stride;
  }
  int64_t start(int64_t row, const rms_norm::Layout& layout) const {
    return row / layout.heads * stride(layout) + row % layout.heads * layout.head_stride;
  }
  int64_t span(const rms_norm::Layout& layout) const { return s_.rows == 0 ? 0 : start(s_.rows - 1, layout) + s_.cols; }
  std::string name() const {
    return text("%lld x %lld, %s%s, %s", static_cast<long long>(s_.rows), static_cast<long long>(s_.cols),
                s_.block == kFixed ? "one scale"
                : s_.block == 0    ? "a scale per row"
                                   : "a scale per block",
                s_.by_columns ? " by columns" : "", s_.llama ? "llama" : "gemma");
  }
  const QuantizedShape s_;
};

template <class X, class R, class W, class Q>
void quantized_answers(Tally& tally, bool quick) {
  const auto expect = [&](const QuantizedShape& s) { tally.expect(QuantizedTrial<X, R, W, Q>(s).run()); };
  std::vector<int64_t> lengths = {1, 130, 512, 1000, 1032};
  if (!quick) lengths.insert(lengths.end(), {7, 31, 127, 128, 129, 257, 1023, 1025, 4096, 8192, 8193, 16384, 17000});
  for (const int64_t cols : lengths)
    for (const int64_t block : {kFixed, int64_t{0}, int64_t{128}}) {
      const bool odd = cols % 2 == 1;
      QuantizedShape s = {3, cols, block, cols % 8 == 0};
      s.has_y = cols != 512, s.by_columns = block > 0 && cols > 512, s.bounded = block == 0 && odd;
      s.begin = odd ? 1 : 0, s.q_begin = odd ? 3 : 0;
      expect(s);
      if (quick && cols > 512) continue;
      s.llama = !s.llama, s.has_weight = false, s.has_y = !s.has_y, s.rows = 5;
      expect(s);
    }
  for (const int64_t rows : {0, 1, 33}) expect({rows, 64, 64, false, true, false, true});
  QuantizedShape s = {6, 136, 128, false, true, true};
  s.layout = {500, 3, 144}, s.q_layout = {3000, 3, 152};
  expect(s);
  s.layout = {140, 1, 0}, s.q_layout = {136, 1, 0}, s.q_begin = 4, s.block = 0, s.llama = true;
  expect(s);
}

// --- Where all is exact
// ------------------------------------------------------------------------------------------------

// The codes and the scale of one row of 1 and -1, whose weight is |values|, so that the outputs are `values`.
template <class X, class W, class Q>
struct ExactRow {
  std::vector<uint8_t> codes;
  float scale = 0;
  ExactRow(const std::vector<float>& values, bool llama, const float* fixed, const float* bound = nullptr) {
    int64_t cols = 1;  // a power of two, by which the mean is exact; the weight is 0 at the end
    while (cols < static_cast<int64_t>(values.size())) cols *= 2;
    std::mt19937 random(1);
    Elements<X> x(cols, 0, random);
    Elements<W> weight(cols, 0, random);
    for (int64_t i = 0; i < cols; ++i) {
      const float value = i < static_cast<int64_t>(values.size()) ? values[i] : 0.0f;
      x.host[i] = Format<X>::from(std::signbit(value) ? -1.0f : 1.0f);
      weight.host[i] = Format<W>::from(std::abs(value));
    }
    x.copy_in(), weight.copy_in();
    auto numbers = ladder::allocate<float>(3);
    auto q = ladder::allocate<uint8_t>(cols);
    rms_norm::Quantization how;
    if (fixed) {
      CUDA_CHECK(cudaMemcpy(numbers.get(), fixed, 4, cudaMemcpyDefault));
      how.scale = numbers.get();
    } else {
      how.scales = numbers.get() + 2;
    }
    if (bound) {
      CUDA_CHECK(cudaMemcpy(numbers.get() + 1, bound, 4, cudaMemcpyDefault));
      how.upper_bound = numbers.get() + 1;
    }
    rms_norm::Options options;
    options.eps = 0;
    options.rounding = llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
    CUDA_CHECK(rms_norm::forward_quantized(static_cast<const X*>(x.data()), static_cast<const W*>(weight.data()),
                                           reinterpret_cast<Q*>(q.get()), how, nullptr, 1, cols, options));
    CUDA_CHECK(cudaDeviceSynchronize());
    codes.resize(values.size());
    CUDA_CHECK(cudaMemcpy(codes.data(), q.get(), codes.size(), cudaMemcpyDefault));
    CUDA_CHECK(cudaMemcpy(&scale, numbers.get() + (fixed ? 0 : 2), 4, cudaMemcpyDefault));
  }
};

// Every number of the format, every tie and its neighbours, and what is too large.
template <class Q>
std::vector<float> hard_values() {
  std::vector<double> numbers;
  if constexpr (Codes<Q>::kInt)
    for (int i = 0; i <= 128; ++i) numbers.push_back(i);
  else
    for (int i = 0; i <= Codes<Q>::kLastCode; ++i) numbers.push_back(Codes<Q>::magnitude(i));
  std::vector<float> values;
  for (size_t i = 0; i + 1 < numbers.size(); ++i) {
    const auto tie = static_cast<float>((numbers[i] + numbers[i + 1]) / 2);
    for (const float v : {static_cast<float>(numbers[i]), std::nextafter(tie, 0.0f), tie, std::nextafter(tie, 1e9f)})
      values.insert(values.end(), {v, -v});
  }
  const auto last = static_cast<float>(numbers.back());
  for (const float v : {last, std::nextafter(last, 1e9f), last * 1.03f, last * 1.0625f, last * 1.1f, 1e6f, 1e30f})
    values.insert(values.end(), {v, -v});
  return values;
}

template <class X, class W, class Q>
void quantized_exactly(Tally& tally, bool) {
  static_assert(std::is_same_v<W, float>);
  const float one = 1.0f, quarter = 0.25f, zero = 0.0f, infinity = INFINITY, nan = NAN;
  std::vector<float> values = hard_values<Q>();
  std::set<uint8_t> hit;
  for (const float* scale : {&one, &quarter}) {
    const ExactRow<X, W, Q> row(values, false, scale);
    int64_t wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      wrong += row.codes[i] != Codes<Q>::nearest(double{values[i]} / *scale);
      hit.insert(row.codes[i]);
    }
    tally.expect(wrong == 0, text("%lld codes of exact numbers are wrong", static_cast<long long>(wrong)));
  }
  const size_t all = Codes<Q>::kInt ? 256 : 2 * (Codes<Q>::kLastCode + 1);
  tally.expect(hit.size() == all, text("%zu of %zu codes were hit", hit.size(), all));

  // Scales that the kernel finds: each operation rounds once, as vLLM's do.
  values.erase(std::remove_if(values.begin(), values.end(), [](float v) { return std::abs(v) > 1e5f; }), values.end());
  for (const bool llama : {false, true})
    for (const float* bound : {static_cast<const float*>(nullptr), &one, &zero}) {
      const ExactRow<X, W, Q> row(values, llama, nullptr, bound);
      float most = 0;
      std::vector<float> y;
      for (const float v : values) {
        y.push_back(llama ? static_cast<float>(Format<X>::value(Format<X>::from(v))) : v);
        most = std::max(most, std::abs(y.back()));
      }
      if (bound) most = std::min(most, *bound);
      const float scale = std::max(most / static_cast<float>(Codes<Q>::kMost), Codes<Q>::least_scale());
      tally.expect(row.scale == scale, text("a scale is %.9g, not %.9g", row.scale, scale));
      const float inverse = 1.0f / scale;
      int64_t wrong = 0;
      for (size_t i = 0; i < values.size(); ++i)
        wrong += row.codes[i] != Codes<Q>::nearest(llama && !Codes<Q>::kInt ? y[i] / scale : y[i] * inverse);
      tally.expect(wrong == 0, text("%lld codes are wrong, %s, %s bound", static_cast<long long>(wrong),
                                    llama ? "llama" : "gemma", bound ? "a" : "no"));
    }

  // A scale of 7, and outputs that are ties of float8 times 7: a product with 1 / 7 would miss most of them.
  if constexpr (Codes<Q>::kE4m3) {
    std::vector<float> ties = {7 * 448.0f};
    for (int i = 8; i + 1 < Codes<Q>::kLastCode; ++i)
      ties.push_back(static_cast<float>(7 * (Codes<Q>::magnitude(i) + Codes<Q>::magnitude(i + 1)) / 2));
    const ExactRow<X, W, Q> row(ties, true, nullptr);
    int64_t wrong = row.scale != 7;
    for (size_t i = 0; i < ties.size(); ++i) wrong += row.codes[i] != Codes<Q>::nearest(double{ties[i]} / 7);
    tally.expect(wrong == 0, text("%lld ties are wrong", static_cast<long long>(wrong)));
  }

  // What is no number, and what has no scale.
  const uint8_t largest = Codes<Q>::kInt ? 127 : Codes<Q>::kLastCode, least = Codes<Q>::kInt ? 0x80 : 0x80 | largest;
  const std::vector<float> odd = {0.0f, 1.0f, -1.0f, infinity, nan, 2.0f};
  const uint8_t none = Codes<Q>::kNan;
  tally.expect(ExactRow<X, W, Q>(odd, false, &zero).codes ==
                   std::vector<uint8_t>({none, largest, least, largest, none, largest}),
               "a scale of 0");
  const ExactRow<X, W, Q> found({0.0f, 1.0f, nan, 2.0f}, false, nullptr);
  tally.expect(found.codes[2] == none && found.codes[3] == largest && found.codes[0] == 0, "NaN in a weight");
  for (const bool llama : {false, true}) {
    const ExactRow<X, W, Q> beyond({1.0f, infinity, 2.0f}, llama, nullptr);
    tally.expect(beyond.scale == infinity && beyond.codes == std::vector<uint8_t>({0, none, 0}), "an infinite weight");
  }
  const ExactRow<X, W, Q> zeros({0.0f, 0.0f}, true, nullptr);
  tally.expect(zeros.scale == Codes<Q>::least_scale() && zeros.codes == std::vector<uint8_t>(2), "zeros");

  // A row of zeros, of NaN, and with an infinite number.
  std::mt19937 random(1);
  Elements<X> x(3 * 4, 0, random);
  const float rows[3][4] = {{0, 0, 0, 0}, {1, nan, 2, 3}, {1, -infinity, 2, 0}};
  for (int i = 0; i < 12; ++i) x.host[i] = Format<X>::from(rows[i / 4][i % 4]);
  x.copy_in();
  auto scales = ladder::allocate<float>(3);
  auto q = ladder::allocate<uint8_t>(12);
  for (const auto rounding : {rms_norm::Rounding::gemma, rms_norm::Rounding::llama}) {
    rms_norm::Quantization how;
    how.scales = scales.get();
    rms_norm::Options options;
    options.rounding = rounding;
    CUDA_CHECK(rms_norm::forward_quantized(static_cast<const X*>(x.data()), static_cast<const W*>(nullptr),
                                           reinterpret_cast<Q*>(q.get()), how, nullptr, 3, 4, options));
    CUDA_CHECK(cudaDeviceSynchronize());
    std::vector<uint8_t> codes(12), wanted = {0, 0, 0, 0, none, none, none, none, 0, none, 0, 0};
    float got[3];
    CUDA_CHECK(cudaMemcpy(codes.data(), q.get(), 12, cudaMemcpyDefault));
    CUDA_CHECK(cudaMemcpy(got, scales.get(), 12, cudaMemcpyDefault));
    tally.expect(codes == wanted, "rows of zeros, NaN and an infinite number");
    for (const float s : got) tally.expect(s == Codes<Q>::least_scale(), text("their scale is %.9g", s));
  }
}

template <class X, class R, class W, class Q>
void add_quantized(std::vector<Group>& groups, bool quick) {
  std::string name = std::string(Format<X>::kName) + (std::is_void_v<R> ? " quantized" : " fused_add quantized");
  if (!std::is_same_v<W, X>) name += std::string(", ") + Format<W>::kName + " weight";
  name += std::string(", to ") + Codes<Q>::kName;
  groups.push_back({name, [=](Tally& tally) { quantized_answers<X, R, W, Q>(tally, quick); }});
  if constexpr (std::is_void_v<R> && std::is_same_v<W, float>)
    groups.push_back({name + ": exactly", [=](Tally& tally) { quantized_exactly<X, W, Q>(tally, quick); }});
}

}  // namespace
}  // namespace header_test
