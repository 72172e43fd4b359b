// What several operators are put together from.
#pragma once
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/operator.h"
#include "common/parallel.h"
#include "common/random.h"
#include "common/text.h"

namespace ladder {

inline std::vector<Shape> shapes_of(std::initializer_list<int64_t> numbers) {
  std::vector<Shape> shapes;
  for (const int64_t n : numbers) shapes.push_back({{n}});
  return shapes;
}

// Element i becomes value(i).
template <class T, class Value>
void fill_each(void* to, int64_t count, Value value) {
  parallel_for(count, 1 << 16, [=](int, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) static_cast<T*>(to)[i] = value(i);
  });
}

// An oracle for results that are never rounded, or rounded in one way only: value(i) is element i of the output.
template <class Value>
class ExactAnswer : public Oracle {
 public:
  ExactAnswer(Value value, bool signs_count) : value_(std::move(value)), signs_count_(signs_count) {}

  double tolerance() const override { return 0; }
  bool is_exact(int) const override { return signs_count_; }
  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i)
      to.expected[i] = to.low[i] = to.high[i] = static_cast<double>(value_(first + i));
  }

 private:
  Value value_;
  bool signs_count_;  // of zeros
};
template <class Value>
std::unique_ptr<Oracle> exact(Value value, bool signs_count = false) {
  return std::make_unique<ExactAnswer<Value>>(std::move(value), signs_count);
}

// An oracle for words in pieces whose sum, modulo 2^32, is `times` the sum of `count` words.
class SumOfPieces : public Oracle {
 public:
  SumOfPieces(std::string what, const uint32_t* from, int64_t count, int64_t times, int64_t pieces)
      : what_(std::move(what)), sum_(sum_of(from, count) * static_cast<uint32_t>(times)), pieces_(pieces) {}

  double tolerance() const override { return 0; }
  void answer(const Variant&, int, int64_t, int64_t, const Answers&) const override {}
  std::string judge(int, const void* pieces) const override {
    const uint32_t got = sum_of(static_cast<const uint32_t*>(pieces), pieces_);
    return got == sum_ ? "" : text("the sum of %s is wrong: expected 0x%08x, got 0x%08x", what_.c_str(), sum_, got);
  }

 private:
  static uint32_t sum_of(const uint32_t* words, int64_t count) {
    return std::accumulate(words, words + count, uint32_t{0});
  }

  std::string what_;
  uint32_t sum_;
  int64_t pieces_;
};

// Elements [first, first + count) of a matrix, row by row: body(row, col, done, length) for `length` elements from that
// place on, after `done` others.
template <class Body>
void for_parts_of_rows(int64_t first, int64_t count, int64_t cols, Body body) {
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / cols, col = (first + done) % cols, length = std::min(count - done, cols - col);
    body(row, col, done, length);
    done += length;
  }
}

// The variants of a norm whose first tensors are input, weight and output, and whose first scalar is eps: whether there
// is a weight, and by how many elements each tensor is off.
struct NormVariant {
  bool has_weight;
  int input, weight, output;
  double eps;
};
inline std::vector<Variant> norm_variants(const Operator& op, std::initializer_list<NormVariant> given) {
  std::vector<Variant> variants;
  for (const NormVariant& one : given) {
    variants.push_back(op.off_by({one.input, one.weight, one.output}));
    variants.back().places[1].absent = !one.has_weight;
    variants.back().scalars[0] = one.eps;
  }
  return variants;
}

}  // namespace ladder
