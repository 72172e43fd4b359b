// qk_norm_rope() against float64: every mixture of types, lengths that hurt, parts of heads that are rotated, strides,
// pointers that begin at any element, and what is refused.
#include <rms_norm/rope.cuh>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/text.h"
#include "tests/headers/rms_norm/elements.h"
#include "tests/headers/rms_norm/groups.h"

namespace header_test {
namespace {

using ladder::text;
using rms_norm::Pairs;

struct Shape {
  int64_t tokens, q_heads, kv_heads, head_dim;
  int64_t rotary_dim;  // 0: all of head_dim
  int64_t others;      // elements of a token that are no query or key head
  int64_t begin;       // elements after a boundary of 256 bytes
  Pairs pairs = Pairs::halves;
  bool has_q_weight = true, has_k_weight = true, llama = false;
  int64_t unknown = -1;  // the token whose position lies outside
};

constexpr int64_t kPositions = 11;

template <class T, class W, class C>
class Trial {
 public:
  explicit Trial(const Shape& s) : s_(s), rotary_dim_(s.rotary_dim ? s.rotary_dim : s.head_dim) {}

  // What is wrong in one sentence, or nothing.
  std::string run() {
    std::mt19937 random(7);
    Elements<T> qkv(s_.tokens * stride(), s_.begin, random);
    Elements<W> q_weight(s_.head_dim, s_.begin, random), k_weight(s_.head_dim, s_.begin, random);
    Elements<C> cos_sin(kPositions * rotary_dim_, s_.begin, random);  // not of angles, so that every term matters
    std::vector<int64_t> positions(s_.tokens + 1);
    for (int64_t t = 0; t < s_.tokens; ++t) positions[t] = (7 * t + 3) % kPositions;
    if (s_.unknown >= 0) positions[s_.unknown] = s_.unknown % 2 ? kPositions : -1;
    const auto given_positions = ladder::allocate<int64_t>(positions.size());
    CUDA_CHECK(
        cudaMemcpy(given_positions.get(), positions.data(), positions.size() * sizeof(int64_t), cudaMemcpyDefault));
    rms_norm::Options options;
    options.eps = 1e-3f, options.weight_offset = 0.5f;
    options.rounding = s_.llama ? rms_norm::Rounding::llama : rms_norm::Rounding::gemma;
    const rms_norm::Heads<T> heads = {qkv.data(), s_.tokens, s_.q_heads, s_.kv_heads, s_.head_dim, stride()};
    const rms_norm::Rotation<C> rotation = {cos_sin.data(), given_positions.get(), kPositions, s_.rotary_dim, s_.pairs};
    const auto launch = [&] {
      const W* const q = s_.has_q_weight ? q_weight.data() : nullptr;
      const W* const k = s_.has_k_weight ? k_weight.data() : nullptr;
      CUDA_CHECK(rms_norm::qk_norm_rope(heads, q, k, rotation, options));
    };
    const auto results = [&](int times) {
      qkv.copy_in();
      for (int i = 0; i < times; ++i) launch();
      CUDA_CHECK(cudaDeviceSynchronize());
      return qkv.copy_out();
    };
    const auto got = results(1), again = results(1), twice = results(2);
    options.dependent_launch = true;  // the second launch reads what the first one writes
    const auto dependent = results(2);
    if (!same(got, again)) return name() + ": other bits";
    if (!same(twice, dependent)) return name() + ": other bits by dependent launches";

    std::vector<char> written(got.size());
    for (int64_t t = 0; t < s_.tokens; ++t)
      for (int64_t h = 0; h < s_.q_heads + s_.kv_heads; ++h) {
        const bool is_query = h < s_.q_heads;
        const bool has_weight = is_query ? s_.has_q_weight : s_.has_k_weight;
        const Elements<W>& weight = is_query ? q_weight : k_weight;
        const int64_t first = t * stride() + h * s_.head_dim;
        double squares = 0;
        for (int64_t i = 0; i < s_.head_dim; ++i) squares += qkv.at(first + i) * qkv.at(first + i);
        const double rstd = 1 / std::sqrt(squares / static_cast<double>(s_.head_dim) + 1e-3f);
        std::vector<Value> normed(s_.head_dim);
        for (int64_t i = 0; i < s_.head_dim; ++i)
          normed[i] = normalized(qkv.at(first + i) * rstd, has_weight ? 0.5 + weight.at(i) : 1.0);
        for (int64_t i = 0; i < s_.head_dim; ++i) {
          const int64_t place = s_.begin + first + i;
          written[place] = 1;
          const double value = Format<T>::value(got[place]);
          if (t == s_.unknown) {
            if (!std::isnan(value)) return name() + text(": token %lld is not NaN", static_cast<long long>(t));
            continue;
          }
          double expected = normed[i].value, terms = std::abs(expected), unsafe = normed[i].unsafe;
          if (i < rotary_dim_) {
            const auto [other, angle, sign] = partner(i);
            const int64_t row = positions[t] * rotary_dim_;
            const double cosine = cos_sin.at(row + angle), sine = sign * cos_sin.at(row + rotary_dim_ / 2 + angle);
            expected = normed[i].value * cosine + normed[other].value * sine;
            terms = std::abs(normed[i].value * cosine) + std::abs(normed[other].value * sine);
            unsafe = std::abs(cosine) * normed[i].unsafe + std::abs(sine) * normed[other].unsafe;
          }
          // A sum of head_dim squares, in an order of the kernel's, and ten operations in float32; one rounding.
          const double in_float32 = (static_cast<double>(s_.head_dim) / 16 + 24) * kU;
          const double allowed =
              Format<T>::kRoundoff * std::abs(expected) + in_float32 * terms + unsafe + Format<T>::kSmallest;
          if (!(std::abs(value - expected) <= allowed))
            return name() + text(": token %lld, head %lld, element %lld: expected %.9g, got %.9g",
                                 static_cast<long long>(t), static_cast<long long>(h), static_cast<long long>(i),
                                 expected, value);
        }
      }
    for (size_t i = 0; i < written.size(); ++i)
      if (!written[i] && got[i] != qkv.host[i]) return name() + text(": element %zu was overrun", i);
    return "";
  }

 private:
  using Stored = typename Format<T>::Stored;
  struct Value {
    double value, unsafe;  // and by how much it may differ, where a rounding may go either way
  };
  struct Partner {
    int64_t element, angle;
    double sign;  // of the sine
  };

  static bool same(const std::vector<Stored>& a, const std::vector<Stored>& b) {
    return std::memcmp(a.data(), b.data(), a.size() * sizeof a[0]) == 0;
  }
  static double rounded(double value) { return Format<T>::value(Format<T>::from(static_cast<float>(value))); }
  // The value after a rounding to T, which goes as here unless float32's errors before it decide.
  static Value rounded(const Value& v) {
    const double error = std::abs(v.value) * 64 * kU + v.unsafe, value = rounded(v.value);
    return {value, std::max(rounded(v.value + error) - value, value - rounded(v.value - error))};
  }
  Value normalized(double value, double factor) const {
    if (!s_.llama) return {value * factor, 0};
    const Value once = rounded(Value{value, 0});
    return rounded(Value{once.value * factor, once.unsafe * std::abs(factor)});
  }
  Partner partner(int64_t i) const {
    const int64_t half = rotary_dim_ / 2;
    if (s_.pairs == Pairs::neighbours) return {i ^ 1, i / 2, i % 2 ? 1.0 : -1.0};
    return i < half ? Partner{i + half, i, -1.0} : Partner{i - half, i - half, 1.0};
  }
  int64_t stride() const { return (s_.q_heads + s_.kv_heads) * s_.head_dim + s_.others; }
  std::string name() const {
    return text("%lld tokens, %lld + %lld heads of %lld, %lld rotated by %s%s", static_cast<long long>(s_.tokens),
                static_cast<long long>(s_.q_heads), static_cast<long long>(s_.kv_heads),
                static_cast<long long>(s_.head_dim), static_cast<long long>(rotary_dim_),
                s_.pairs == Pairs::halves ? "halves" : "neighbours", s_.llama ? ", llama" : "");
  }
  const Shape s_;
  const int64_t rotary_dim_;
};

template <class T, class W, class C>
void answers(Tally& tally, bool quick) {
  const auto expect = [&](Shape shape) {
    for (const Pairs pairs : {Pairs::halves, Pairs::neighbours}) {
      shape.pairs = pairs, shape.llama = !shape.llama;
      tally.expect(Trial<T, W, C>(shape).run());
    }
  };
  std::vector<int64_t> lengths = {2, 6, 64, 80, 128, 130, 256, 512, 1030};
  if (!quick) lengths.insert(lengths.end(), {4, 16, 32, 96, 100, 192, 1024, 2048});
  for (const int64_t head_dim : lengths) {
    expect({3, 4, 2, head_dim, 0, 2 * head_dim, 0});
    expect({2, 1, 1, head_dim, 0, 7, head_dim % 3 + 1});
    if (head_dim > 2) expect({2, 3, 1, head_dim, head_dim / 4 * 2, 0, 0});
  }
  expect({2, 2, 1, 128, 2, 0, 0});
  expect({2, 2, 1, 128, 96, 64, 0});
  expect({0, 2, 1, 128, 0, 0, 0});
  expect({70, 5, 3, 64, 0, 64, 0});
  expect({2, 32, 8, 128, 64, 1024, 0});
  for (const bool has_q : {false, true}) expect({3, 2, 2, 64, 32, 0, 0, Pairs::halves, has_q, !has_q});
  expect({5, 3, 2, 64, 0, 64, 0, Pairs::halves, true, true, false, 3});
  expect({5, 3, 2, 66, 0, 64, 0, Pairs::halves, true, true, false, 4});
}

template <class T, class W, class C>
void add(std::vector<Group>& groups, bool quick) {
  std::string name = std::string(Format<T>::kName) + " rope";
  if (!std::is_same_v<W, T>) name += std::string(", ") + Format<W>::kName + " weight";
  if (!std::is_same_v<C, T>) name += std::string(", ") + Format<C>::kName + " angles";
  groups.push_back({name, [=](Tally& tally) { answers<T, W, C>(tally, quick); }});
}
template <class T>
void add_halves(std::vector<Group>& groups, bool quick) {
  add<T, T, T>(groups, quick), add<T, float, T>(groups, quick);
  add<T, T, float>(groups, quick), add<T, float, float>(groups, quick);
}

void arguments(Tally& tally) {
  const auto memory = ladder::allocate<float>(4096);
  float* const m = memory.get();
  float *const qkv = m, *const q = m + 1024, *const k = m + 1088, *const cos_sin = m + 1152;
  const auto places = ladder::allocate<int64_t>(8);
  CUDA_CHECK(cudaMemset(m, 0, 4096 * sizeof(float)));
  CUDA_CHECK(cudaMemset(places.get(), 0, 8 * sizeof(int64_t)));
  using Heads = rms_norm::Heads<float>;
  using Rotation = rms_norm::Rotation<float>;
  const Heads heads = {qkv, 4, 2, 1, 64};
  const Rotation rotation = {cos_sin, places.get(), 16};
  rms_norm::Options options;
  const auto refused = [&](const char* wanted, auto... arguments) {
    const char* const got = rms_norm::explain_qk_norm_rope(arguments...);
    const std::string sentence = got ? got : "";
    const cudaError_t error = rms_norm::qk_norm_rope(arguments...);
    tally.expect(sentence == wanted && (error == cudaSuccess) == sentence.empty(), sentence + ", not: " + wanted);
  };
  const auto with = [](auto value, auto change) {
    change(value);
    return value;
  };
  const auto refused_heads = [&](const char* wanted, auto change) {
    refused(wanted, with(heads, change), q, k, rotation);
  };
  const auto refused_rotation = [&](const char* wanted, auto change) {
    refused(wanted, heads, q, k, with(rotation, change));
  };
  const auto shifted = [](auto* pointer) {
    return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + 1);
  };
  refused("", heads, q, k, rotation);
  refused("", heads, nullptr, nullptr, rotation);
  refused("", heads, q, nullptr, rotation);
  refused("", heads, nullptr, k, rotation);
  refused("", heads, q, q, rotation);
  refused("", with(heads, [](Heads& h) { h.stride = 256; }), qkv + 192, k, rotation);  // between two tokens
  refused("qkv overlaps q_weight", with(heads, [](Heads& h) { h.stride = 255; }), qkv + 192, k, rotation);
  refused_heads("", [](Heads& h) { h.tokens = 0, h.qkv = nullptr; });
  refused_heads("", [](Heads& h) { h.tokens = 1, h.stride = INT64_MAX; });  // no token needs it
  refused_heads("", [](Heads& h) { h.qkv += 3 * 200, h.stride = -200; });
  refused_heads("tokens is negative", [](Heads& h) { h.tokens = -1; });
  refused_heads("q_heads or kv_heads is less than 1", [](Heads& h) { h.kv_heads = 0; });
  refused_heads("q_heads + kv_heads is above 65535", [](Heads& h) { h.q_heads = 65535; });
  for (const int64_t head_dim : {0, 1, 63})
    refused_heads("head_dim is odd or less than 2", [=](Heads& h) { h.head_dim = head_dim; });
  refused_heads("tokens or head_dim is above 2^31 - 1 or 2^30 - 1", [](Heads& h) { h.tokens = int64_t{1} << 31; });
  refused_heads("a stride is too large for 64-bit addresses", [](Heads& h) { h.stride = INT64_MAX; });
  refused_heads("stride is less than the heads of a token take", [](Heads& h) { h.stride = 191; });
  refused_heads("qkv is nullptr", [](Heads& h) { h.qkv = nullptr; });
  refused_heads("qkv is not aligned to its element type", [=](Heads& h) { h.qkv = shifted(h.qkv); });
  for (const int64_t rotary_dim : {-2, 1, 63, 66})
    refused_rotation("rotary_dim is odd, less than 2, or greater than head_dim",
                     [=](Rotation& r) { r.rotary_dim = rotary_dim; });
  for (const int64_t positions : {int64_t{0}, INT64_MAX})
    refused_rotation("max_positions is less than 1, or too large for 64-bit addresses",
                     [=](Rotation& r) { r.max_positions = positions; });
  refused_rotation("cos_sin is nullptr", [](Rotation& r) { r.cos_sin = nullptr; });
  refused_rotation("positions is nullptr", [](Rotation& r) { r.positions = nullptr; });
  refused_rotation("cos_sin is not aligned to its element type", [=](Rotation& r) { r.cos_sin = shifted(r.cos_sin); });
  refused_rotation("positions is not aligned to its element type",
                   [=](Rotation& r) { r.positions = shifted(r.positions); });
  refused_rotation("qkv overlaps cos_sin", [=](Rotation& r) { r.cos_sin = qkv + 700; });
  refused_rotation("qkv overlaps positions",
                   [=](Rotation& r) { r.positions = reinterpret_cast<int64_t*>(qkv + 4 * 192 - 2); });
  refused("q_weight is not aligned to its element type", heads, shifted(q), k, rotation);
  refused("k_weight is not aligned to its element type", heads, q, shifted(k), rotation);
  refused("qkv overlaps q_weight", heads, qkv + 4 * 192 - 1, k, rotation);
  refused("qkv overlaps k_weight", heads, q, qkv, rotation);
  options.eps = -1.0f;
  refused("eps is negative or not finite", heads, q, k, rotation, options);
  CUDA_CHECK(cudaDeviceSynchronize());
}

}  // namespace

std::vector<Group> rope(bool quick) {
  std::vector<Group> groups;
  add<float, float, float>(groups, quick);
  add_halves<__half>(groups, quick), add_halves<__nv_bfloat16>(groups, quick);
  groups.push_back({"rope: arguments", arguments});
  return groups;
}

}  // namespace header_test
