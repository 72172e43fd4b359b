#include "common/operators/group_sum.h"

#include <numeric>

#include "common/operators/parts.h"

namespace ladder {
namespace group_sum {

enum Place { kFrom, kTo, kScratch };

int64_t pieces(int64_t n, int64_t size) { return (n + size - 1) / size; }

class Description : public Operator {
 public:
  const char* title() const override { return "sums of groups"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 24, "Words of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, Role::input, shape[0]),
            vector_tensor("to", Type::uint32, Role::output, shape[0]),
            vector_tensor("scratch", Type::uint32, Role::scratch, pieces(shape[0], GroupSum::kGroup / 8))};
  }

  // Each word is added to its group's sum, and the sum to the word.
  double operations(const Shape& shape) const override { return 2.0 * static_cast<double>(shape[0]); }

  // Sizes around those of warps, blocks, shares of a group and groups.
  std::vector<Shape> edge_cases(bool) const override {
    return shapes_of({0, 1, 31, 33, 1000, 1025, 4095, 4097, 32767, 32768, 32769, 65537, 100003});
  }

  std::vector<Variant> variants(const Shape&) const override { return {plain(), off_by({1, 1})}; }

  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    const uint64_t key = mix64(seed);
    fill_each<uint32_t>(to, shape[0], [=](int64_t i) { return hash32(key, i); });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const auto* from = static_cast<const uint32_t*>(inputs[kFrom]);
    std::vector<uint32_t> sums(pieces(shape[0], GroupSum::kGroup));
    parallel_for(static_cast<int64_t>(sums.size()), 1, [&](int, int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        const int64_t first = group * GroupSum::kGroup, last = std::min(first + GroupSum::kGroup, shape[0]);
        sums[group] = std::accumulate(from + first, from + last, uint32_t{0});
      }
    });
    return exact([=](int64_t i) { return from[i] + sums[i / GroupSum::kGroup]; });
  }
};

}  // namespace group_sum

const Operator& GroupSum::get() {
  static const group_sum::Description description;
  return description;
}

}  // namespace ladder
