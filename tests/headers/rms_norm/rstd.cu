// rstd, which the forward pass stores and the backward pass reads: all that is said of the norms and the gradients
// without it holds with it, too.
#include <rms_norm/rms_norm.cuh>

#include <limits>

#include "tests/headers/rms_norm/backward.h"

namespace header_test {
namespace {

using E = __nv_bfloat16;
using rms_norm::Layout;
using rms_norm::WithRstd;

struct Stored {
  int64_t rows, cols;
  Layout layout = {};
  int64_t begin = 0;  // elements after a boundary of 256 bytes
  rms_norm::Options options = {};
  bool has_weight = true, is_zero = false;
};

// What is wrong in one sentence, or nothing: rstd against float64, and the other results against those of the call
// without it, which have the same bits.
template <bool kAdds>
std::string stored(const Stored& s) {
  const std::string name = text("%lld x %lld", static_cast<long long>(s.rows), static_cast<long long>(s.cols));
  std::mt19937 random(5);
  const int64_t stride = s.layout.stride == rms_norm::kContiguous ? s.cols : s.layout.stride;
  const auto start = [&](int64_t row) {
    return row / s.layout.heads * stride + row % s.layout.heads * s.layout.head_stride;
  };
  const int64_t count = s.rows == 0 ? 0 : start(s.rows - 1) + s.cols;
  Elements<E> x(count, s.begin, random), residual(count, s.begin, random), weight(s.cols, s.begin, random);
  Elements<E> y(count, s.begin, random), sum(count, s.begin, random);
  if (s.is_zero) {
    std::fill(x.host.begin(), x.host.end(), 0), x.copy_in();
    std::fill(residual.host.begin(), residual.host.end(), 0), residual.copy_in();
  }
  Elements<float> rstds(s.rows, s.begin, random);
  std::fill(rstds.host.begin(), rstds.host.end(), std::numeric_limits<float>::quiet_NaN());
  rstds.copy_in();
  const auto call = [&](const auto& to) {
    const rms_norm::Tensor<const E> from = {x.data(), s.layout}, addend = {residual.data(), s.layout};
    const E* const factors = s.has_weight ? weight.data() : nullptr;
    if (s.options.workspace) CUDA_CHECK(rms_norm::init_workspace(s.options.workspace));
    if constexpr (kAdds)
      CUDA_CHECK(rms_norm::fused_add_rms_norm(from, addend, rms_norm::Tensor<E>{sum.data(), s.layout}, factors, to,
                                              s.rows, s.cols, s.options));
    else
      CUDA_CHECK(rms_norm::forward(from, factors, to, s.rows, s.cols, s.options));
    CUDA_CHECK(cudaDeviceSynchronize());
  };
  const rms_norm::Tensor<E> to = {y.data(), s.layout};
  call(to);
  const auto plain_y = y.copy_out(), plain_sum = sum.copy_out();
  y.copy_in(), sum.copy_in();
  call(WithRstd{to, rstds.data()});
  if (y.copy_out() != plain_y || sum.copy_out() != plain_sum) return name + ": other bits than without rstd";

  const auto got = rstds.copy_out();
  const auto& input = kAdds ? plain_sum : x.host;
  for (int64_t r = 0; r < s.rows; ++r) {
    double squares = 0;
    for (int64_t i = 0; i < s.cols; ++i) {
      const double value = Format<E>::value(input[s.begin + start(r) + i]);
      squares += value * value;
    }
    const double expected = 1 / std::sqrt(squares / static_cast<double>(s.cols) + s.options.eps);
    // Half of what the sum of squares is off by, in the order of a kernel, and what rsqrtf() and its argument are.
    const double allowed = expected * kU * (static_cast<double>(s.cols) / 512 + 16);
    if (!(std::abs(got[s.begin + r] - expected) <= allowed))
      return name + text(": rstd %lld: expected %.9g, got %.9g", static_cast<long long>(r), expected, got[s.begin + r]);
  }
  for (size_t i = 0; i < got.size(); ++i) {
    const bool inside = static_cast<int64_t>(i) >= s.begin && static_cast<int64_t>(i) < s.begin + s.rows;
    if (!inside && got[i] == got[i]) return name + text(": element %zu of rstd was overrun", i);
  }
  return "";
}

template <bool kAdds>
void answers_stored(Tally& tally, bool quick) {
  const auto memory = ladder::allocate<char>(rms_norm::kWorkspaceBytes);
  const auto expect = [&](const Stored& s) { tally.expect(stored<kAdds>(s)); };
  std::vector<int64_t> lengths = {1, 7, 31, 33, 64, 111, 1000, 1024, 1025, 4096, 4098, 8193, 16384};
  if (!quick) lengths.insert(lengths.end(), {32, 5120, 8192, 16385, 32768, 65536, 65537, 131072, 262152});
  int number = 0;
  for (const int64_t cols : lengths)
    for (const int64_t rows : {1, 3, 40}) {
      if (rows * cols > (quick ? 50000 : 600000)) continue;
      Stored s = {rows, cols};
      s.has_weight = ++number % 4 != 0, s.is_zero = number % 7 == 0;
      s.options.rounding = number % 2 ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
      s.options.dependent_launch = number % 3 == 0, s.options.eps = number % 5 ? 1e-6f : 1e-3f;
      expect(s);
      s.options.batch_invariant = true;
      expect(s);
      s.begin = 1 + number % 7;  // at any element
      expect(s);
      s.options.batch_invariant = false;
      expect(s);
    }
  // More rows than kernels of unaligned rows take at once, and none.
  for (const int64_t cols : {20, 111, 1001}) expect({cols == 1001 ? 119 : 989, cols, {}, 3});
  expect({0, 64});
  // Strides, and heads in either direction and behind each other.
  expect({5, 100, {130}, 1});
  expect({30, 64, {2000, 10, 72}});
  expect({24, 128, {128, 8, 512}});
  expect({6, 64, {192, 3, 64}});
  expect({12, 1024, {12 * 1024, 12, 1024}});
  // Rows that blocks all over the GPU share, and teams of blocks that take row after row.
  for (const auto& [rows, cols] : {std::pair<int64_t, int64_t>{1, 70000}, {2, 140001}, {90, 66000}, {127, 66001}}) {
    if (quick && rows * cols > 300000) continue;
    Stored s = {rows, cols};
    s.options.workspace = memory.get();
    expect(s);
  }
}

void arguments(Tally& tally) {
  const auto memory = ladder::allocate<float>(8192);
  float* const m = memory.get();
  CUDA_CHECK(cudaMemset(m, 0, 8192 * sizeof(float)));
  float *const x = m, *const y = m + 1024, *const weight = m + 2048, *const rstd = m + 3072, *const sum = m + 4096;
  float *const dx = m + 5120, *const dweight = m + 6144, *const workspace = m + 7168, *const none = nullptr;
  auto* const misaligned = reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(rstd) + 2);
  const auto expect = [&](const char* got, cudaError_t error, const std::string& wanted) {
    const std::string sentence = got ? got : "";
    tally.expect(sentence == wanted && error == (wanted.empty() ? cudaSuccess : cudaErrorInvalidValue),
                 sentence + ", not: " + wanted);
  };
  const auto forward = [&](const char* wanted, const auto&... given) {
    expect(rms_norm::explain(given...), rms_norm::forward(given...), wanted);
  };
  const auto fused_add = [&](const char* wanted, const auto&... given) {
    expect(rms_norm::explain(given...), rms_norm::fused_add_rms_norm(given...), wanted);
  };
  const auto backward = [&](const char* wanted, const auto&... given) {
    expect(rms_norm::explain_backward(given...), rms_norm::backward(given...), wanted);
  };
  rms_norm::Options options;
  forward("", x, weight, WithRstd{y, rstd}, 4, 64);
  forward("", x, weight, WithRstd{y, none}, 0, 64);
  forward("rstd is nullptr", x, weight, WithRstd{y, none}, 4, 64);
  forward("rstd is not aligned to its element type", x, weight, WithRstd{y, misaligned}, 4, 64);
  for (float* taken : {x + 255, y - 3, weight + 63})
    forward("rstd overlaps a tensor", x, weight, WithRstd{y, taken}, 4, 64);
  forward("", x, weight, WithRstd{y, y - 4}, 4, 64);
  forward("y is nullptr", x, weight, WithRstd{none, rstd}, 4, 64);
  options.workspace = rstd + 4;
  forward("", x, weight, WithRstd{rms_norm::Tensor{y, {64}}, rstd}, 4, 64, options);
  options.workspace = rstd;
  forward("workspace overlaps rstd", x, weight, WithRstd{y, rstd + 3}, 4, 64, options);
  fused_add("", x, sum, sum, weight, WithRstd{y, rstd}, 4, 64);
  fused_add("rstd is nullptr", x, sum, sum, weight, WithRstd{y, none}, 4, 64);
  fused_add("rstd overlaps a tensor", x, dx, sum, weight, WithRstd{y, dx + 64}, 4, 64);
  fused_add("rstd overlaps a tensor", x, dx, sum, weight, WithRstd{y, sum + 64}, 4, 64);

  const float* const read = rstd;
  backward("", y, nullptr, WithRstd{x, read}, weight, dx, dweight, workspace, 4, 64);
  backward("", y, nullptr, WithRstd{x, none}, weight, dx, dweight, workspace, 0, 64);
  backward("", y, nullptr, WithRstd{x, weight}, weight, dx, dweight, workspace, 4, 64);  // both are only read
  backward("rstd is nullptr", y, nullptr, WithRstd{x, none}, weight, dx, dweight, workspace, 4, 64);
  backward("rstd is not aligned to its element type", y, nullptr, WithRstd{x, misaligned}, weight, dx, dweight,
           workspace, 4, 64);
  backward("dx overlaps rstd", y, nullptr, WithRstd{x, dx + 255}, weight, dx, dweight, workspace, 4, 64);
  backward("dweight overlaps rstd", y, nullptr, WithRstd{x, dweight - 3}, weight, dx, dweight, workspace, 4, 64);
  backward("workspace overlaps rstd", y, nullptr, WithRstd{x, workspace}, weight, dx, dweight, workspace, 4, 64);
  backward("", y, nullptr, WithRstd{x, workspace}, weight, dx, none, workspace, 4, 64);  // no workspace is needed
  CUDA_CHECK(cudaDeviceSynchronize());
}

const bool added = [] {
  gradients().push_back([](std::vector<Group>& groups, bool quick) {
    groups.push_back({"bfloat16 forward, stored rstd", [=](Tally& tally) { answers_stored<false>(tally, quick); }});
    groups.push_back({"bfloat16 fused_add, stored rstd", [=](Tally& tally) { answers_stored<true>(tally, quick); }});
    add<E, E, E, true>(groups, quick);
    add<E, E, float, true>(groups, quick);  // the kernel for rows of any length
    groups.push_back({"stored rstd: arguments", arguments});
  });
  return true;
}();

}  // namespace
}  // namespace header_test
