#include "common/operators/add.h"

#include <algorithm>
#include <cmath>

#include "common/operators/parts.h"

namespace ladder {
namespace add {

enum Place { kA, kB, kC };

// More elements than 1024 blocks of 256 threads have: a launch whose grid and block are exchanged is refused.
constexpr int64_t kMoreThanExchanged = 1024 * 256 + 3;

class Description : public Operator {
 public:
  // length: of b, where a and c have n elements.
  explicit Description(int64_t (*length)(int64_t n)) : length_(length) {}

  const char* title() const override { return "vector addition"; }
  std::vector<Parameter> parameters() const override { return {{"n", 0, 1 << 24, "Elements of the main input"}}; }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {vector_tensor("a", Type::float32, Role::input, shape[0]),
            vector_tensor("b", Type::float32, Role::input, length_(shape[0])),
            vector_tensor("c", Type::float32, Role::output, shape[0])};
  }

  double operations(const Shape& shape) const override { return static_cast<double>(shape[0]); }

  // Sizes around those of vectors, warps and blocks. The last has more elements than a resident grid has threads.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    return shapes_of({0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 4097, 32767,
                      cpu_device ? kMoreThanExchanged : 6000011});
  }

  // No offset, one on each tensor alone, and one on all of them.
  std::vector<Variant> variants(const Shape& shape) const override {
    if (shape[0] == kMoreThanExchanged) return {plain()};
    return {plain(), off_by({1, 0, 0}), off_by({0, 1, 0}), off_by({0, 0, 1}), off_by({1, 1, 1})};
  }

  // Magnitudes from 2^-12 to 2^12 and both signs, so that an addend is seldom lost and many sums are rounded.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    fill_each<float>(to, tensor == kB ? length_(shape[0]) : shape[0], [=](int64_t i) {
      const int exponent = static_cast<int>(hash32(~key, i) % 25) - 12;
      return std::ldexp(uniform(hash32(key, i)), exponent);
    });
  }

  // IEEE 754 rounds a sum of two floats in one way, so a right result is right to the bit.
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    const auto *a = static_cast<const float*>(inputs[kA]), *b = static_cast<const float*>(inputs[kB]);
    const int64_t length = std::max<int64_t>(length_(shape[0]), 1);  // of b
    return exact([=](int64_t i) { return a[i] + b[i % length]; }, true);
  }

 private:
  int64_t (*length_)(int64_t n);
};

}  // namespace add

const Operator& Add::get() {
  static const add::Description description([](int64_t n) { return n; });
  return description;
}

const Operator& AddTable::get() {
  static const add::Description description(AddTable::length);
  return description;
}

}  // namespace ladder
