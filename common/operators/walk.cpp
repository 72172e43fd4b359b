#include "common/operators/walk.h"

#include "common/operators/parts.h"

namespace ladder {
namespace walk {

enum Place { kTable, kEnd, kScratch, kTicks };

class Description : public Operator {
 public:
  const char* title() const override { return "walk"; }
  std::vector<Parameter> parameters() const override {
    return {{"n", 32, 4096, "Words of the table, a power of two"},
            {"warps", 1, 1, "Warps of walkers, 32 walkers each"},
            {"apart", 0, 1, "Words from one walker's start to the next one's"}};
  }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("table", Type::uint32, Role::input, shape[0]),
            vector_tensor("end", Type::uint32, Role::output, 32 * shape[1]),
            vector_tensor("scratch", Type::uint32, Role::scratch, shape[0]),
            vector_tensor("ticks", Type::uint32, Role::scratch, 4)};
  }

  // The smallest table, one that shared memory holds, and one larger than a block reads at once; one warp and several;
  // all walkers on one word, beside each other, in one bank.
  std::vector<Shape> edge_cases(bool) const override {
    return {{{32, 1, 1}}, {{64, 1, 0}}, {{1024, 3, 1}}, {{4096, 2, 32}}, {{8192, 1, 7}}, {{65536, 4, 5}}};
  }

  std::vector<Variant> variants(const Shape&) const override { return {plain(), off_by({1, 1})}; }

  // A factor of 4 k + 1 and an odd shift make one cycle of a power of two (Hull and Dobell 1962).
  void fill(const Shape& shape, int, uint64_t seed, void* to) const override {
    const uint64_t key = mix64(seed);
    const auto factor = static_cast<uint32_t>(key) << 3 | 5u, shift = static_cast<uint32_t>(key >> 32) | 1u;
    const int64_t n = shape[0];
    fill_each<uint32_t>(
        to, n, [=](int64_t i) { return static_cast<uint32_t>((factor * static_cast<uint32_t>(i) + shift) % n); });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const auto* table = static_cast<const uint32_t*>(inputs[kTable]);
    const int64_t n = shape[0], apart = shape[2];
    return exact([=](int64_t walker) {
      auto at = static_cast<uint32_t>(walker * apart % n);
      for (int step = 0; step < Walk::kSteps; ++step) at = table[at];
      return at;
    });
  }

  // What the walkers read.
  double bytes(const Shape& shape, const Variant&) const override {
    return 4.0 * 32.0 * static_cast<double>(shape[1]) * (Walk::kSteps + 1);
  }
};

}  // namespace walk

const Operator& Walk::get() {
  static const walk::Description description;
  return description;
}

}  // namespace ladder
