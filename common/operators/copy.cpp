#include "common/operators/copy.h"

#include <numeric>

#include "common/operators/parts.h"

namespace ladder {
namespace copy {

enum Place { kFrom, kTo };

uint32_t pattern(int64_t i) { return static_cast<uint32_t>(i) * Copy::kPatternStep; }

class Description : public Operator {
 public:
  Description(Role from, Role to) : from_(from), to_(to) {}

  const char* title() const override { return "copy"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 27, "Words of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("from", Type::uint32, from_, shape[0]), vector_tensor("to", Type::uint32, to_, shape[0])};
  }

  // Sizes around those of vectors, warps, blocks and tiles. The last has more tiles than a resident grid has blocks.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    return shapes_of(
        {0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 1000, 1023, 1024, 1025, 4096, 8193, 65536, cpu_device ? 1000003 : 6000011});
  }

  std::vector<Variant> variants(const Shape&) const override {
    return {plain(), off_by({0, 1}), off_by({1, 0}), off_by({1, 1})};
  }

  void fill(const Shape& shape, int, uint64_t, void* to) const override { fill_each<uint32_t>(to, shape[0], pattern); }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const auto* from = static_cast<const uint32_t*>(inputs[kFrom]);
    if (to_ == Role::pieces)
      return std::make_unique<SumOfPieces>(std::to_string(shape[0]) + " words", from, shape[0], 1, shape[0]);
    return exact([=](int64_t i) { return from ? from[i] : pattern(i); });
  }

 private:
  Role from_, to_;
};

}  // namespace copy

const Operator& Copy::get() {
  static const copy::Description description(Role::input, Role::output);
  return description;
}

const Operator& Read::get() {
  static const copy::Description description(Role::input, Role::pieces);
  return description;
}

const Operator& Write::get() {
  static const copy::Description description(Role::scratch, Role::output);
  return description;
}

}  // namespace ladder
