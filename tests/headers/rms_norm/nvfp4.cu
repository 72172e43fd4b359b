// Norms that end in NVFP4, against float64: an interval of what float32 may compute, as quantized.h has it.
#include <rms_norm/nvfp4.cuh>

#include "tests/headers/rms_norm/quantized.h"

namespace header_test {
namespace {

constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// The place of the nearest number among both signs' numbers; of two that are as near, the one with the even code.
int nearest_e2m1(double x) {
  int best = 0;
  const double size = std::abs(x);
  for (int code = 1; code < 8; ++code) {
    const double error = std::abs(size - kE2m1[code]), least = std::abs(size - kE2m1[best]);
    if (error < least || (error == least && code % 2 == 0)) best = code;
  }
  return x < 0 ? -best : best;
}

struct Nvfp4Shape {
  int64_t rows, cols;
  bool tiled, has_weight;
  int64_t stride;
};

template <class X, class R, class W>
std::string nvfp4_trial(const Nvfp4Shape& s) {
  constexpr bool kAdds = !std::is_void_v<R>;
  const std::string name =
      text("%lld x %lld%s: ", static_cast<long long>(s.rows), static_cast<long long>(s.cols), s.tiled ? ", tiled" : "");
  std::mt19937 random(3);
  const int64_t blocks = s.cols / 16, places = s.tiled ? rms_norm::nvfp4_scales(s.rows, s.cols) : s.rows * blocks;
  Elements<X> x(s.rows * s.stride, 0, random), residual(kAdds ? s.rows * s.stride : 0, 0, random);
  Elements<W> weight(s.cols, 0, random);
  for (size_t i = 0; i < x.host.size(); ++i)  // of different magnitude, and some blocks of zeros
    x.host[i] =
        Format<X>::from(static_cast<float>(Format<X>::value(x.host[i]) * (i / 16 % 5 == 0 ? 0 : 1 + i / 16 % 9)));
  x.copy_in();
  const auto before = residual.host;
  const size_t bytes = s.rows * s.cols / 2;
  std::vector<uint8_t> codes(bytes + 64, 0xaa), scales(places + 64, 0xaa);
  auto q = ladder::allocate<uint8_t>(codes.size()), of_blocks = ladder::allocate<uint8_t>(scales.size());
  auto scale = ladder::allocate<float>(1);
  const float whole = 0.0021f;
  const auto copy = [](void* to, const void* from, size_t count) {
    CUDA_CHECK(cudaMemcpy(to, from, count, cudaMemcpyDefault));
  };
  copy(q.get(), codes.data(), codes.size()), copy(of_blocks.get(), scales.data(), scales.size());
  copy(scale.get(), &whole, sizeof whole);
  const rms_norm::Nvfp4 how = {scale.get(), reinterpret_cast<__nv_fp8_e4m3*>(of_blocks.get()), s.tiled};
  const rms_norm::Tensor<const X> given{x.data(), {s.stride}};
  const W* w = s.has_weight ? weight.data() : nullptr;
  rms_norm::Options options;
  options.weight_offset = 0.5f;
  cudaError_t error;
  if constexpr (kAdds) {
    const rms_norm::Tensor<R> sum{residual.data(), {s.stride}};
    error = rms_norm::fused_add_rms_norm_nvfp4(given, sum, sum, w, q.get(), how, s.rows, s.cols, options);
  } else {
    error = rms_norm::forward_nvfp4(given, w, q.get(), how, s.rows, s.cols, options);
  }
  if (error != cudaSuccess) return name + cudaGetErrorString(error);
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<uint8_t> got(codes.size()), got_scales(scales.size());
  copy(got.data(), q.get(), got.size()), copy(got_scales.data(), of_blocks.get(), scales.size());
  const auto sums = residual.copy_out();
  int64_t doubtful = 0;
  for (int64_t r = 0; r < s.rows; ++r) {
    std::vector<double> input(s.cols);
    double squares = 0;
    for (int64_t i = 0; i < s.cols; ++i) {
      const int64_t at = r * s.stride + i;
      input[i] = x.at(at);
      if constexpr (kAdds) {
        const auto sum = Format<R>::from(static_cast<float>(input[i] + Format<R>::value(before[at])));
        if (sums[at] != sum) return name + "a sum";
        input[i] = Format<R>::value(sum);
      }
      squares += input[i] * input[i];
    }
    const double rstd = 1 / std::sqrt(squares / s.cols + 1e-6f);
    for (int64_t b = 0; b < blocks; ++b) {
      const auto output = [&](int64_t i) {
        const double factor = s.has_weight ? 0.5f + weight.at(i) : 1.0;
        return Interval{rstd, rstd}.wider(32 * kU).times(input[i], input[i]).times(factor, factor);
      };
      double least = 0, most = 0;
      for (int64_t i = 16 * b; i < 16 * (b + 1); ++i)
        least = std::max(least, output(i).least()), most = std::max(most, output(i).most());
      // Tiles of 128 rows × 4 scales: the rows 32 apart follow each other.
      const int64_t place = s.tiled
                                ? (r / 128 * ((blocks + 3) / 4) + b / 4) * 512 + r % 32 * 16 + r / 32 % 4 * 4 + b % 4
                                : r * blocks + b;
      using E4m3 = Codes<__nv_fp8_e4m3>;
      const int low = E4m3::nearest(least / 6 / whole * (1 - 4 * kU)),
                high = E4m3::nearest(most / 6 / whole * (1 + 4 * kU));
      const uint8_t code = got_scales[place];
      if (code < low || code > high) return name + text("a scale is %d, not %d to %d", code, low, high);
      scales[place] = code;
      const double unit = E4m3::magnitude(code) * whole;
      for (int64_t i = 16 * b; i < 16 * (b + 1); ++i) {
        const int64_t at = (r * s.cols + i) / 2;
        const int nibble = got[at] >> (i % 2 * 4) & 15, is = nibble & 8 ? -(nibble & 7) : nibble;
        const Interval of = unit > 0 ? output(i).times(1 / unit, 1 / unit).wider(6 * kU) : Interval{0, 0};
        const int from = nearest_e2m1(of.low), to = nearest_e2m1(of.high);
        doubtful += from != to;
        if (is < from || is > to)
          return name + text("(%lld, %lld) is %d, not %d to %d", static_cast<long long>(r), static_cast<long long>(i),
                             is, from, to);
        codes[at] = got[at];
      }
    }
  }
  if (codes != got) return name + "q was overrun";
  if (scales != got_scales) return name + "scales was overrun";
  if (doubtful > 0.01 * static_cast<double>(s.rows * s.cols) + 2) return name + "many numbers may have two codes";
  return "";
}

template <class X, class R, class W>
void nvfp4_answers(Tally& tally, bool quick) {
  for (const bool tiled : {false, true})
    for (const Nvfp4Shape& s :
         {Nvfp4Shape{3, 16, tiled, true, 16}, {131, 80, tiled, true, 96}, {2, 4128, tiled, false, 4128}})
      if (!quick || s.cols < 1000) tally.expect(nvfp4_trial<X, R, W>(s));
}

// All codes, ties between two of them and their neighbours, of numbers that float32 computes exactly.
void nvfp4_exactly(Tally& tally) {
  constexpr int kCols = 64;
  std::vector<float> values;
  for (int i = 0; i < 7; ++i) {
    const auto tie = static_cast<float>((kE2m1[i] + kE2m1[i + 1]) / 2);
    for (const float v : {static_cast<float>(kE2m1[i]), tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 9.0f)})
      values.push_back(v);
  }
  std::vector<float> x(kCols), weight(kCols), want(kCols);
  for (int i = 0; i < kCols; ++i) {  // each block's largest is 6, by which its scale is 1
    x[i] = i / 16 % 2 ? -1.0f : 1.0f;
    weight[i] = i % 16 == 0 ? 6.0f : values[(i / 32 * 15 + i % 16) % values.size()];
  }
  auto memory = ladder::allocate<float>(2 * kCols + 4);
  auto q = ladder::allocate<uint8_t>(kCols / 2), scales = ladder::allocate<uint8_t>(kCols / 16);
  const float one = 1.0f;
  CUDA_CHECK(cudaMemcpy(memory.get(), x.data(), kCols * 4, cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(memory.get() + kCols, weight.data(), kCols * 4, cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(memory.get() + 2 * kCols, &one, 4, cudaMemcpyDefault));
  rms_norm::Options options;
  options.eps = 0;
  CUDA_CHECK(rms_norm::forward_nvfp4(memory.get(), memory.get() + kCols, q.get(),
                                     {memory.get() + 2 * kCols, reinterpret_cast<__nv_fp8_e4m3*>(scales.get())}, 1,
                                     kCols, options));
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<uint8_t> got(kCols / 2), got_scales(kCols / 16);
  CUDA_CHECK(cudaMemcpy(got.data(), q.get(), got.size(), cudaMemcpyDefault));
  CUDA_CHECK(cudaMemcpy(got_scales.data(), scales.get(), got_scales.size(), cudaMemcpyDefault));
  std::set<int> hit;
  for (int i = 0; i < kCols; ++i) {
    const int nibble = got[i / 2] >> (i % 2 * 4) & 15;
    hit.insert(nibble);
    tally.expect((nibble & 8 ? -(nibble & 7) : nibble) == nearest_e2m1(double{x[i]} * weight[i]),
                 text("%g has the code %d", double{x[i] * weight[i]}, nibble));
  }
  tally.expect(hit.size() == 16, text("%zu of 16 codes were hit", hit.size()));
  tally.expect(got_scales == std::vector<uint8_t>(kCols / 16, 0x38), "scales of 1");
}

void nvfp4_arguments(Tally& tally) {
  using E = __nv_bfloat16;
  const auto memory = ladder::allocate<E>(4096);
  CUDA_CHECK(cudaMemset(memory.get(), 0, 4096 * sizeof(E)));
  E *const x = memory.get(), *const residual = x + 512, *const weight = x + 1024;
  auto* const q = reinterpret_cast<uint8_t*>(x + 2048);
  auto* const scales = reinterpret_cast<__nv_fp8_e4m3*>(x + 3072);
  const auto* const scale = reinterpret_cast<const float*>(x + 1536);
  const rms_norm::Nvfp4 how = {scale, scales};
  const auto refused = [&](const std::string& wanted, auto... given) {
    const char* got = rms_norm::explain_nvfp4(given...);
    const cudaError_t error = rms_norm::forward_nvfp4(given...);
    tally.expect((got ? got : "") == wanted && error == (wanted.empty() ? cudaSuccess : cudaErrorInvalidValue), wanted);
  };
  refused("", x, weight, q, how, 4, 64);
  refused("", static_cast<E*>(nullptr), weight, static_cast<uint8_t*>(nullptr), how, 0, 64);
  refused("cols is not a multiple of 16", x, weight, q, how, 4, 72);
  refused("rows that end in NVFP4 have no heads", rms_norm::Tensor{x, {64, 2, 32}}, weight, q, how, 4, 32);
  refused("q, scale or scales is nullptr", x, weight, q, rms_norm::Nvfp4{nullptr, scales}, 4, 64);
  refused("x is nullptr", static_cast<E*>(nullptr), weight, q, how, 4, 64);
  refused("rows or the weight do not begin on 16-byte boundaries", x + 1, weight, q, how, 4, 64);
  refused("q is not aligned to 8 bytes", x, weight, q + 4, how, 4, 64);
  refused("q or scales overlaps another tensor", x, weight, reinterpret_cast<uint8_t*>(x), how, 4, 64);
  refused("q overlaps scales", x, weight, q, rms_norm::Nvfp4{scale, reinterpret_cast<__nv_fp8_e4m3*>(q)}, 4, 64);
  rms_norm::Options options;
  options.rounding = rms_norm::Rounding::llama;
  refused("rounding is not gemma: NVFP4 is rounded from float32 once", x, weight, q, how, 4, 64, options);
  tally.expect(rms_norm::fused_add_rms_norm_nvfp4(x, residual, residual, weight, q, how, 4, 64) == cudaSuccess, "sum");
  CUDA_CHECK(cudaDeviceSynchronize());
}

const bool added = [] {
  quantized_forms().push_back([](std::vector<Group>& groups, bool quick) {
    groups.push_back(
        {"bfloat16 nvfp4", [=](Tally& tally) { nvfp4_answers<__nv_bfloat16, void, float>(tally, quick); }});
    groups.push_back({"bfloat16 fused_add nvfp4",
                      [=](Tally& tally) { nvfp4_answers<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16>(tally, quick); }});
    groups.push_back({"nvfp4: exactly", nvfp4_exactly});
    groups.push_back({"nvfp4: arguments", nvfp4_arguments});
  });
  return true;
}();

}  // namespace
}  // namespace header_test
