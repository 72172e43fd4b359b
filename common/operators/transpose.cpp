#include "common/operators/transpose.h"

#include <algorithm>

#include "common/operators/parts.h"

namespace ladder {
namespace transpose {

enum Place { kInput, kOutput };

// Word i of the input. The factor is odd, so no two of 2^32 words are equal, and a word in the wrong place shows. All
// kinds of floats occur: NaNs, infinities, subnormal numbers.
uint32_t pattern(int64_t i) { return static_cast<uint32_t>(i) * 0x9e3779b9u; }

class Answer : public Oracle {
 public:
  explicit Answer(const Shape& shape) : rows_(shape[0]), cols_(shape[1]) {}

  double tolerance() const override { return 0; }

  // Computed, not read from the input: a column of it is spread over as many cache lines as it has elements.
  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for_parts_of_rows(first, count, rows_, [&](int64_t col, int64_t row, int64_t done, int64_t length) {
      for (int64_t i = done; i < done + length; ++i)
        to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(pattern((row + i - done) * cols_ + col));
    });
  }

 private:
  int64_t rows_, cols_;
};

class Description : public Operator {
 public:
  explicit Description(bool in_place) : in_place_(in_place) {}

  const char* title() const override { return in_place_ ? "transpose in place" : "transpose"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 8192, "Rows of the main input"}, {"cols", 0, 8192, "Columns of the main input"}};
  }

  // Words, because bits are compared.
  std::vector<Tensor> tensors(const Shape& shape) const override {
    return {{"input", Type::uint32, Role::input, shape[0], shape[1]},
            {"output", Type::uint32, Role::output, shape[1], shape[0]}};
  }

  // Sizes around those of vectors, warps and tiles; one row, one column, nothing; multiples of 4 that no tile divides.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    if (in_place_) {
      for (const int64_t n : {0, 1, 2, 31, 32, 33, 64, 65, 100, 127, 128, 161, 500, 1023}) shapes.push_back({{n, n}});
      return shapes;
    }
    for (const auto& [rows, cols] : std::vector<std::pair<int64_t, int64_t>>{
             {0, 5},     {5, 0},     {1, 1},     {1, 33},   {33, 1},   {3, 5},     {4, 4},
             {31, 33},   {32, 32},   {33, 31},   {36, 100}, {64, 65},  {100, 36},  {127, 129},
             {128, 128}, {129, 127}, {132, 260}, {1, 4099}, {4099, 1}, {260, 516}, {1000, 1023}})
      shapes.push_back({{rows, cols}});
    // More rows of tiles than gridDim.y can count. On the CPU device it would take longer than all the others together.
    if (!cpu_device) shapes.push_back({{65536 * 32 + 1, 1}});
    return shapes;
  }

  // Each pointer off by one float.
  std::vector<Variant> variants(const Shape& shape) const override {
    if (in_place_ || shape[0] * shape[1] > 1 << 16) return {plain(), off_by({1, 1})};
    return {plain(), off_by({0, 1}), off_by({1, 0}), off_by({1, 1})};
  }

  Variant plain() const override {
    Variant variant = Operator::plain();
    if (in_place_) variant.places[kOutput].same_as = kInput;
    return variant;
  }

  void fill(const Shape& shape, int, uint64_t, void* to) const override {
    fill_each<uint32_t>(to, shape[0] * shape[1], pattern);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>&) const override {
    return std::make_unique<Answer>(shape);
  }

 private:
  bool in_place_;
};

}  // namespace transpose

const Operator& Transpose::get() {
  static const transpose::Description description(false);
  return description;
}

const Operator& TransposeInPlace::get() {
  static const transpose::Description description(true);
  return description;
}

}  // namespace ladder
