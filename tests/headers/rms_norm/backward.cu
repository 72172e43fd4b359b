// The gradients of the header against float64: every mixture of types, lengths that hurt, strides, heads, pointers that
// begin at any element, and what is refused.
#include <rms_norm/backward.cuh>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/text.h"
#include "tests/headers/rms_norm/elements.h"
#include "tests/headers/rms_norm/groups.h"

namespace header_test {
namespace {

using ladder::text;

struct Shape {
  int64_t rows, cols;
  rms_norm::Layout layout;  // of all tensors
  int64_t begin;            // elements after a boundary of 256 bytes
  bool has_weight, has_sum, wants_dweight, in_place;
};

template <class X, class W, class Y>
class Trial {
 public:
  explicit Trial(const Shape& s) : s_(s) {}

  // What is wrong in one sentence, or nothing.
  std::string run() {
    std::mt19937 random(7);
    const int64_t count = span();
    Elements<Y> dy(count, s_.begin, random);
    Elements<X> x(count, s_.begin, random), dsum(count, s_.begin, random), dx(count, s_.begin, random);
    Elements<W> weight(s_.cols, s_.begin, random), dweight(s_.cols, s_.begin, random);
    const auto workspace = ladder::allocate<char>(rms_norm::backward_workspace_bytes(s_.rows, s_.cols) + 1);
    const W* const given_weight = s_.has_weight ? weight.data() : nullptr;
    W* const wanted = s_.has_weight && s_.wants_dweight ? dweight.data() : nullptr;
    Elements<X>& target = s_.in_place ? x : dx;
    rms_norm::Options options;
    options.eps = 1e-3f, options.weight_offset = 0.5f;
    const auto call = [&] {
      const rms_norm::Tensor<const X> no_sum = {s_.has_sum ? dsum.data() : nullptr, s_.layout};
      return rms_norm::backward(rms_norm::Tensor<const Y>{dy.data(), s_.layout}, no_sum,
                                rms_norm::Tensor<const X>{x.data(), s_.layout}, given_weight,
                                rms_norm::Tensor<X>{target.data(), s_.layout}, wanted, workspace.get(), s_.rows,
                                s_.cols, options);
    };
    if (const cudaError_t error = call()) return name() + ": " + cudaGetErrorString(error);
    CUDA_CHECK(cudaDeviceSynchronize());
    const auto got_x = target.copy_out();
    const auto got_weight = dweight.copy_out();
    if (!s_.in_place) {  // the same bits again
      CUDA_CHECK(call());
      CUDA_CHECK(cudaDeviceSynchronize());
      const auto again = target.copy_out();
      if (std::memcmp(again.data(), got_x.data(), again.size() * sizeof again[0]) != 0) return name() + ": other bits";
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
      const double n = static_cast<double>(s_.cols), rstd = 1 / std::sqrt(squares / n + 1e-3f);
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

template <class X, class W, class Y>
void answers(Tally& tally, bool quick) {
  const auto expect = [&](const Shape& shape) { tally.expect(Trial<X, W, Y>(shape).run()); };
  const rms_norm::Layout rows = {};
  std::vector<int64_t> lengths = {1, 31, 33, 255, 257, 1000, 4097};
  if (!quick) lengths.insert(lengths.end(), {7, 32, 1023, 1024, 1025, 8193, 70000});
  for (const int64_t cols : lengths) expect({3, cols, rows, cols % 3, true, cols % 2 == 0, true, false});
  for (const int64_t count : {0, 1, 255, 256, 257, 989}) expect({count, 20, rows, 1, true, true, true, false});
  expect({5, 100, rows, 0, false, true, false, false});
  expect({5, 100, rows, 0, true, false, false, true});
  expect({5, 100, {130}, 1, true, true, true, false});
  expect({6, 16, {100, 3, 20}, 0, true, false, true, false});
}

template <class X, class W, class Y>
void add(std::vector<Group>& groups, bool quick) {
  std::string name = std::string(Format<X>::kName) + " backward";
  if (!std::is_same_v<W, X>) name += std::string(", ") + Format<W>::kName + " weight";
  if (!std::is_same_v<Y, X>) name += std::string(", from ") + Format<Y>::kName;
  groups.push_back({name, [=](Tally& tally) { answers<X, W, Y>(tally, quick); }});
}
template <class X, class W>
void add_from_all(std::vector<Group>& groups, bool quick) {
  add<X, W, float>(groups, quick), add<X, W, __half>(groups, quick), add<X, W, __nv_bfloat16>(groups, quick);
}
template <class X>
void add_of_all_weights(std::vector<Group>& groups, bool quick) {
  add_from_all<X, float>(groups, quick), add_from_all<X, __half>(groups, quick);
  add_from_all<X, __nv_bfloat16>(groups, quick);
}

void arguments(Tally& tally) {
  const auto memory = ladder::allocate<float>(4096);
  float* const m = memory.get();
  float *const dy = m, *const x = m + 512, *const dx = m + 1024, *const weight = m + 1536, *const dweight = m + 2048,
               *const workspace = m + 2560;
  const float* const none = nullptr;
  float* const nothing = nullptr;
  rms_norm::Options options;
  const auto expect = [&](const char* got, cudaError_t error, const char* wanted) {
    const std::string sentence = got ? got : "";
    tally.expect(sentence == wanted && (error == cudaSuccess) == sentence.empty(), sentence + ", not: " + wanted);
  };
  const auto shifted = [](float* pointer) {
    return reinterpret_cast<float*>(reinterpret_cast<uintptr_t>(pointer) + 1);
  };
  const auto refused = [&](const char* wanted, auto... arguments) {
    expect(rms_norm::explain_backward(arguments...), rms_norm::backward(arguments...), wanted);
  };
  refused("", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  refused("", dy, nullptr, x, weight, dy, nothing, nullptr, 4, 64);
  refused("", none, nullptr, none, weight, nothing, dweight, nullptr, 0, 64);
  refused("rows is negative", dy, nullptr, x, weight, dx, dweight, workspace, -1, 64);
  refused("cols is less than 1", dy, nullptr, x, weight, dx, dweight, workspace, 4, 0);
  refused("dy is nullptr", none, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  refused("dx is nullptr", dy, nullptr, x, weight, nothing, dweight, workspace, 4, 64);
  refused("dweight is given, and weight is nullptr", dy, nullptr, x, none, dx, dweight, workspace, 4, 64);
  refused("dweight is wanted, and workspace is nullptr", dy, nullptr, x, weight, dx, dweight, nullptr, 4, 64);
  refused("dx overlaps x, and is not the same tensor", dy, nullptr, x, weight, x + 1, dweight, workspace, 4, 64);
  refused("dx overlaps dy, and is not the same tensor", dy, nullptr, x, weight, dy + 64, dweight, workspace, 4, 64);
  refused("dx overlaps weight", dy, nullptr, x, dx + 64, dx, dweight, workspace, 4, 64);
  refused("dweight overlaps weight", dy, nullptr, x, weight, dx, weight, workspace, 4, 64);
  refused("dweight overlaps a tensor", dy, nullptr, x, weight, dx, dx + 192, workspace, 4, 64);
  refused("dweight overlaps a tensor", dy, x, dx, weight, dx, x, workspace, 4, 64);
  for (float* taken : {dy, x, dx})
    refused("workspace overlaps a tensor", dy, nullptr, x, weight, dx, dweight, taken, 4, 64);
  refused("workspace overlaps weight or dweight", dy, nullptr, x, weight, dx, dweight, weight, 4, 64);
  refused("workspace overlaps weight or dweight", dy, nullptr, x, weight, dx, dweight, dweight - 64, 4, 64);
  refused("", dy, nullptr, x, weight, dx, nothing, x, 4, 64);  // no workspace is needed
  refused("x is not aligned to its element type", dy, nullptr, shifted(x), weight, dx, dweight, workspace, 4, 64);
  refused("dsum is not aligned to its element type", dy, shifted(x), x, weight, dx, dweight, workspace, 4, 64);
  refused("cols is too large for dweight", none, nullptr, none, weight, nothing, dweight, nullptr, 0, int64_t{1} << 40);
  const rms_norm::Layout heads = {128, 2, 64}, far = {128, 2, INT64_MIN};
  refused("a stride is too large for 64-bit addresses", rms_norm::Tensor{dy, heads}, nullptr, rms_norm::Tensor{x, far},
          weight, rms_norm::Tensor{dx, heads}, dweight, workspace, 4, 64);
  refused("", dy, nullptr, rms_norm::Tensor{x, {INT64_MAX}}, weight, dx, dweight, workspace, 1, 64);  // no row needs it
  refused("rows of dx overlap each other", dy, nullptr, x, weight, rms_norm::Tensor{dx, {63}}, nothing, nullptr, 4, 64);
  options.eps = -1.0f;
  refused("eps is negative or not finite", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64, options);
  for (const int64_t rows : {-1, 0})
    tally.expect(rms_norm::backward_workspace_bytes(rows, 64) == 0, "bytes of no rows");
  // An error of another call is not this one's.
  void* too_much = nullptr;
  static_cast<void>(cudaMalloc(&too_much, size_t{1} << 60));
  refused("", dy, nullptr, x, weight, dx, dweight, workspace, 4, 64);
  static_cast<void>(cudaGetLastError());
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

std::vector<Group> backward(bool quick) {
  std::vector<Group> groups;
  add_of_all_weights<float>(groups, quick), add_of_all_weights<__half>(groups, quick);
  add_of_all_weights<__nv_bfloat16>(groups, quick);
  groups.push_back({"backward: arguments", arguments});
  return groups;
}

}  // namespace header_test
