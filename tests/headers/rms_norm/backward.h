// The gradients of the header against float64: every mixture of types, lengths that hurt, strides, heads, pointers that
// begin at any element, and what is refused. Where a tensor lies, and how many rows are beside it, changes no bit of
// dx.
#pragma once
#include <rms_norm/backward.cuh>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/text.h"
#include "tests/headers/rms_norm/elements.h"
#include "tests/headers/rms_norm/groups.h"

namespace header_test {

// What the files of this folder add to the groups of gradients.
using AddGradients = void (*)(std::vector<Group>&, bool quick);
std::vector<AddGradients>& gradients();

namespace {

using ladder::text;

struct Shape {
  int64_t rows, cols;
  rms_norm::Layout layout;  // of all tensors
  int64_t begin;            // elements after a boundary of 256 bytes
  bool has_weight, has_sum, wants_dweight, in_place;
};

// x as backward() takes it.
template <bool kStored, class T>
auto with_rstd(const T& x, const float* rstd) {
  if constexpr (kStored)
    return rms_norm::WithRstd{x, rstd};
  else
    return x;
}

// kStored: the call is given an rstd, and not the one that it would compute, so that using either shows.
template <class X, class W, class Y, bool kStored = false>
class GradientTrial {
 public:
  explicit GradientTrial(const Shape& s) : s_(s) {}

  // What is wrong in one sentence, or nothing.
  std::string run() {
    std::mt19937 random(7);
    const int64_t count = span();
    Elements<Y> dy(count, s_.begin, random);
    Elements<X> x(count, s_.begin, random), dsum(count, s_.begin, random), dx(count, s_.begin, random);
    Elements<W> weight(s_.cols, s_.begin, random), dweight(s_.cols, s_.begin, random);
    Elements<float> rstds(s_.rows, s_.begin, random);
    for (float& rstd : rstds.host) rstd = 0.5f + std::abs(rstd);
    rstds.copy_in();
    const auto workspace = ladder::allocate<char>(rms_norm::backward_workspace_bytes(s_.rows, s_.cols) + 1);
    const W* const given_weight = s_.has_weight ? weight.data() : nullptr;
    W* const wanted = s_.has_weight && s_.wants_dweight ? dweight.data() : nullptr;
    Elements<X>& target = s_.in_place ? x : dx;
    rms_norm::Options options;
    options.eps = 1e-3f, options.weight_offset = 0.5f;
    const auto call = [&] {
      const rms_norm::Tensor<const X> no_sum = {s_.has_sum ? dsum.data() : nullptr, s_.layout};
      const rms_norm::Tensor<const X> from = {x.data(), s_.layout};
      return rms_norm::backward(
          rms_norm::Tensor<const Y>{dy.data(), s_.layout}, no_sum, with_rstd<kStored>(from, rstds.data()), given_weight,
          rms_norm::Tensor<X>{target.data(), s_.layout}, wanted, workspace.get(), s_.rows, s_.cols, options);
    };
    if (const cudaError_t error = call()) return name() + ": " + cudaGetErrorString(error);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto got_x = target.copy_out();
    const auto got_weight = dweight.copy_out();
    if (!s_.in_place) {  // the same bits again
      dx.copy_in(), dweight.copy_in();
      CUDA_CHECK(call());
      CUDA_CHECK(cudaDeviceSynchronize());
      if (!same(target.copy_out(), got_x) || !same(dweight.copy_out(), got_weight)) return name() + ": other bits";
    }

    std::vector<char> written(target.host.size());
    std::vector<double> sum(s_.cols), size(s_.cols);
    const double rows_order = static_cast<double>(s_.rows) / 256 + std::min<double>(s_.rows, 256) + 16;
    const double row_error = (static_cast<double>(s_.cols) / 256 + 24) * kU;  // of the sums of a row, in their order
    for (int64_t r = 0; r < s_.rows; ++r) {
      const int64_t first = start(r);
      double squares = 0, products = 0, magnitude = 0;
      for (int64_t i = 0; i < s_.cols; ++i) {
        const double g = dy.at(first + i) * factor(weight, i), value = x.at(first + i);
        squares += value * value, products += g * value, magnitude += std::abs(g * value);
      }
      const double n = static_cast<double>(s_.cols), rstd = kStored ? rstds.at(r) : 1 / std::sqrt(squares / n + 1e-3f);
      for (int64_t i = 0; i < s_.cols; ++i) {
        const double value = x.at(first + i), g = dy.at(first + i) * factor(weight, i);
        const double added = s_.has_sum ? dsum.at(first + i) : 0.0;
        const double expected = rstd * (g - value * rstd * rstd * products / n) + added;
        const double terms = rstd * (std::abs(g) + std::abs(value) * rstd * rstd * magnitude / n) + std::abs(added);
        const int64_t place = s_.begin + first + i;
        written[place] = 1;
        const double allowed = Format<X>::kRoundoff * std::abs(expected) + 4 * row_error * terms + Format<X>::kSmallest;
        const double got = Format<X>::value(got_x[place]);
        if (!(std::abs(got - expected) <= allowed))
          return name() + text(": dx (%lld, %lld): expected %.9g, got %.9g", static_cast<long long>(r),
                               static_cast<long long>(i), expected, got);
        sum[i] += dy.at(first + i) * value * rstd;
        size[i] += std::abs(dy.at(first + i) * value * rstd);
      }
    }
    for (size_t i = 0; i < written.size(); ++i)
      if (!written[i] && got_x[i] != target.host[i]) return name() + text(": element %zu of dx was overrun", i);
    for (int64_t i = 0; i < s_.cols && wanted; ++i) {
      const double got = Format<W>::value(got_weight[s_.begin + i]);
      const double allowed =
          Format<W>::kRoundoff * std::abs(sum[i]) + (rows_order * kU + 4 * row_error) * size[i] + Format<W>::kSmallest;
      if (!(std::abs(got - sum[i]) <= allowed))
        return name() + text(": dweight %lld: expected %.9g, got %.9g", static_cast<long long>(i), sum[i], got);
    }
    for (size_t i = 0; i < got_weight.size(); ++i) {
      const bool inside = wanted && static_cast<int64_t>(i) >= s_.begin && static_cast<int64_t>(i) < s_.begin + s_.cols;
      if (!inside && got_weight[i] != dweight.host[i]) return name() + ": dweight was overrun";
    }
    return "";
  }

 private:
  template <class Stored>
  static bool same(const std::vector<Stored>& a, const std::vector<Stored>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  }
  int64_t stride() const { return s_.layout.stride == rms_norm::kContiguous ? s_.cols : s_.layout.stride; }
  int64_t start(int64_t row) const {
    return row / s_.layout.heads * stride() + row % s_.layout.heads * s_.layout.head_stride;
  }
  int64_t span() const { return s_.rows == 0 ? 0 : start(s_.rows - 1) + s_.cols; }
  double factor(const Elements<W>& weight, int64_t i) const { return s_.has_weight ? 0.5 + weight.at(i) : 1.0; }
  std::string name() const {
    return text("%lld x %lld", static_cast<long long>(s_.rows), static_cast<long long>(s_.cols));
  }
  const Shape s_;
};

// Rows of whole packs, on 16-byte boundaries: a part of a warp has a row, a warp, a block, two and eight blocks. Few
// rows, all of which are on the GPU at once, in one block, in several, and in clusters; and so many that a block has
// several, and some have one more than others.
template <class Expect>
void answers_in_packs(const Expect& expect, bool quick) {
  const rms_norm::Layout rows = {};
  std::vector<int64_t> lengths = {8, 64, 256, 520, 1024, 1048, 8200, 16392};
  if (!quick) lengths.insert(lengths.end(), {16, 512, 1032, 4096, 8192, 16384, 32768});
  for (const int64_t cols : lengths) expect({3, cols, rows, 0, true, cols % 16 != 0, true, false});
  expect({16, 256, rows, 0, true, true, true, false});
  for (const int64_t count : {1000, 2100}) expect({count, 64, rows, 0, true, true, true, false});
  for (const int64_t count : {100, 1500}) expect({count, 520, rows, 0, true, false, true, false});
  expect({1500, 1048, rows, 0, true, false, true, false});
  if (!quick)
    for (const int64_t cols : {512, 1048}) expect({700, cols, rows, 0, true, false, true, false});
  if (!quick) expect({300, 8200, rows, 0, true, false, true, false});
  // Few rows: one cluster, two rows of a thread, and several clusters of either kind. Some are read again for dweight,
  // unless dx has taken their place.
  expect({5, 1288, rows, 0, true, true, true, true});
  expect({24, 1288, rows, 0, true, true, true, false});
  for (const bool in_place : {false, true}) expect({2, 8200, rows, 0, true, false, true, in_place});
  if (!quick)
    for (const int64_t cols : {2048, 2056, 4096, 8192})
      for (const int64_t count : {1, 2, 12, 16, 64, 100})
        expect({count, cols, rows, 0, true, count == 12, true, false});
  expect({2, 4096, {4104}, 0, false, true, false, true});
  expect({6, 16, {128, 3, 32}, 0, true, false, true, false});
  expect({6, 16, {48, 3, 16}, 0, true, false, true, true});  // heads that follow each other as rows do
  // Heads with gaps, and so many rows that a warp, or a block, goes from one token's to another's.
  expect({quick ? 600 : 6000, 520, {1600, 3, 528}, 0, true, true, true, false});
  expect({quick ? 300 : 3000, 1048, {3200, 3, 1056}, 0, true, true, true, false});
}

template <class X, class W, class Y>
constexpr bool has_fast = rms_norm::detail::has_fast_gradients<X, W, Y>;

// The bits of dx, of the first of these rows.
template <class X, bool kStored>
auto first_row(int64_t rows, int64_t cols, int64_t begin) {
  std::mt19937 random(3);
  const int64_t count = rows * cols;
  Elements<X> dy(cols, 0, random), x(cols, 0, random), weight(cols, 0, random);
  std::mt19937 others(4);
  Elements<X> moved_dy(count, begin, others), moved_x(count, begin, others), dx(count, begin, others);
  std::copy_n(dy.host.begin(), cols, moved_dy.host.begin() + begin);
  std::copy_n(x.host.begin(), cols, moved_x.host.begin() + begin);
  moved_dy.copy_in(), moved_x.copy_in();
  Elements<float> rstds(rows, 0, others);
  rstds.host[0] = 0.9f;
  rstds.copy_in();
  X* const nothing = nullptr;
  const X* const from = moved_x.data();
  CUDA_CHECK(rms_norm::backward(static_cast<const X*>(moved_dy.data()), nullptr, with_rstd<kStored>(from, rstds.data()),
                                static_cast<const X*>(weight.data()), dx.data(), nothing, nullptr, rows, cols));
  CUDA_CHECK(cudaDeviceSynchronize());
  auto result = dx.copy_out();
  result.erase(result.begin(), result.begin() + begin);
  result.resize(cols);
  return result;
}
template <class X, bool kStored>
void invariance(Tally& tally, bool quick) {
  std::vector<int64_t> lengths = {64, 1000, 1048};
  if (!quick) lengths.insert(lengths.end(), {512, 4096, 8200, 16392});
  for (const int64_t cols : lengths) {
    const auto alone = first_row<X, kStored>(1, cols, 0);
    for (const int64_t rows : {1, 30})
      for (const int64_t begin : {0, 1, 3}) {
        const auto row = first_row<X, kStored>(rows, cols, begin);
        const bool same = std::memcmp(row.data(), alone.data(), cols * sizeof row[0]) == 0;
        tally.expect(same, text("%lld x %lld from element %lld on: other bits", static_cast<long long>(rows),
                                static_cast<long long>(cols), static_cast<long long>(begin)));
      }
  }
}

template <class X, class W, class Y, bool kStored>
void answers(Tally& tally, bool quick) {
  const auto expect = [&](const Shape& shape) { tally.expect(GradientTrial<X, W, Y, kStored>(shape).run()); };
  const rms_norm::Layout rows = {};
  std::vector<int64_t> lengths = {1, 31, 33, 255, 257, 1000, 4097};
  if (!quick) lengths.insert(lengths.end(), {7, 32, 1023, 1024, 1025, 8193, 70000});
  for (const int64_t cols : lengths) expect({3, cols, rows, cols % 3, true, cols % 2 == 0, true, false});
  for (const int64_t count : {0, 1, 255, 256, 257, 989}) expect({count, 20, rows, 1, true, true, true, false});
  if (has_fast<X, W, Y>) answers_in_packs(expect, quick);
  // Several rows of a block, or of a cluster, at any element.
  if (has_fast<X, W, Y>) expect({quick ? 20 : 1200, 1043, rows, 3, true, true, true, true});
  if (has_fast<X, W, Y>) expect({quick ? 30 : 1200, 1043, {3140, 3, 1045}, 0, true, false, true, false});
  if (has_fast<X, W, Y> && !quick) expect({300, 8195, {8203}, 1, true, true, true, false});
  expect({5, 100, rows, 0, false, true, false, false});
  expect({5, 100, rows, 0, true, false, false, true});
  expect({5, 100, {130}, 1, true, true, true, false});
  expect({6, 16, {100, 3, 20}, 0, true, false, true, false});
}

template <class X, class W, class Y, bool kStored = false>
void add(std::vector<Group>& groups, bool quick) {
  std::string name = std::string(Format<X>::kName) + " backward";
  if (!std::is_same_v<W, X>) name += std::string(", ") + Format<W>::kName + " weight";
  if (!std::is_same_v<Y, X>) name += std::string(", from ") + Format<Y>::kName;
  if (kStored) name += ", stored rstd";
  groups.push_back({name, [=](Tally& tally) { answers<X, W, Y, kStored>(tally, quick); }});
  if (std::is_same_v<W, X> && std::is_same_v<Y, X>)
    groups.push_back({name + ": batch invariance", [=](Tally& tally) { invariance<X, kStored>(tally, quick); }});
}
// All mixtures of x's type, but the two that begin_with() has: a fast one, and one with the kernel for any length.
template <class X>
void add_others(std::vector<Group>& groups, bool quick) {
  using H = std::conditional_t<std::is_same_v<X, float>, __nv_bfloat16, float>;  // the two other types
  using J = std::conditional_t<std::is_same_v<X, __half>, __nv_bfloat16, __half>;
  add<X, H, X>(groups, quick), add<X, J, X>(groups, quick);
  add<X, H, H>(groups, quick), add<X, H, J>(groups, quick);
  add<X, J, H>(groups, quick), add<X, J, J>(groups, quick);
  add<X, X, J>(groups, quick);
}
template <class X>
void begin_with(std::vector<Group>& groups, bool quick) {
  add<X, X, X>(groups, quick);
  add<X, X, std::conditional_t<std::is_same_v<X, float>, __nv_bfloat16, float>>(groups, quick);
}

}  // namespace
}  // namespace header_test
