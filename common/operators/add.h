// The sum of two vectors of floats, element by element; the second may be a table that is used again and again.
#pragma once
#include "common/stage.h"

namespace ladder {

struct Add {
  // c[i] = a[i] + b[i], n floats each; no pointer is necessarily aligned beyond 4 bytes.
  using Launch = void (*)(const float* a, const float* b, float* c, int64_t n, cudaStream_t stream);
  static const Operator& get();
};

struct AddTable {
  // c[i] = a[i] + table[i % length(n)], n floats of a and c.
  using Launch = void (*)(const float* a, const float* table, float* c, int64_t n, cudaStream_t stream);
  static const Operator& get();

  // An eighth of n, so that a launch reads the table eight times; a multiple of 1024, and at least that.
  static constexpr int64_t length(int64_t n) { return n < 16384 ? 1024 : n / 8192 * 1024; }
};

}  // namespace ladder

#ifdef LADDER_OPERATOR
#include <algorithm>
#include <cmath>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"

namespace ladder {
namespace add {

enum Place { kA, kB, kC };

// IEEE 754 rounds a sum of two floats in one way, so a right result is right to the bit.
class Answer : public Oracle {
 public:
  Answer(const float* a, const float* b, int64_t length) : a_(a), b_(b), length_(length) {}

  double tolerance() const override { return 0; }
  bool is_exact(int) const override { return true; }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i)
      to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(a_[first + i] + b_[(first + i) % length_]);
  }

 private:
  const float *a_, *b_;
  int64_t length_;  // of b
};

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

  void launch(AnyLaunch launch, const Arguments& arguments, cudaStream_t stream) const override {
    reinterpret_cast<Add::Launch>(launch)(arguments.tensor<float>(kA), arguments.tensor<float>(kB),
                                          arguments.tensor<float>(kC), arguments.shape[0], stream);
  }

  double operations(const Shape& shape) const override { return static_cast<double>(shape[0]); }

  // Sizes around those of vectors, warps and blocks. The last has more elements than a resident grid has threads.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t n : {0, 1, 2, 3, 4, 5, 31, 32, 33, 255, 256, 257, 1000, 1023, 1024, 1025, 4097, 32767})
      shapes.push_back({{n}});
    shapes.push_back({{cpu_device ? 100003 : 6000011}});
    return shapes;
  }

  // No offset, one on each tensor alone, and one on all of them.
  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(5, plain());
    for (const int tensor : {kA, kB, kC})
      result[1 + tensor].places[tensor].offset = result[4].places[tensor].offset = 1;
    return result;
  }

  // Magnitudes from 2^-12 to 2^12 and both signs, so that an addend is seldom lost and many sums are rounded.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    auto* values = static_cast<float*>(to);
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    parallel_for(tensor == kB ? length_(shape[0]) : shape[0], 1 << 16, [=](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int exponent = static_cast<int>(hash32(~key, i) % 25) - 12;
        values[i] = std::ldexp(uniform(hash32(key, i)), exponent);
      }
    });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(static_cast<const float*>(inputs[kA]), static_cast<const float*>(inputs[kB]),
                                    std::max<int64_t>(length_(shape[0]), 1));
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
#endif  // LADDER_OPERATOR
