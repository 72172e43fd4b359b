// The operators of the ceilings: their answers are exact, and work that is left out is seen.
#include <doctest/doctest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "common/check.h"
#include "common/operators/add.h"
#include "common/operators/copy.h"
#include "common/operators/group_sum.h"
#include "common/operators/repeated.h"
#include "common/operators/rms_norm.h"
#include "common/operators/sum.h"
#include "common/operators/typed_rms_norm.h"

using namespace ladder;

namespace {

template <class T>
const T* input(const Case& c, int tensor) {
  return reinterpret_cast<const T*>(c.inputs[tensor].data());
}

// The exact answer to one element of an output; nothing else is allowed.
double answer(const Case& c, int tensor, int64_t element) {
  double exact, low, high;
  c.oracle->answer(c.op.plain(), tensor, element, 1, {&exact, &low, &high});
  CHECK(low == exact);
  CHECK(high == exact);
  return exact;
}

}  // namespace

TEST_CASE("repeated reading: each word as often as asked") {
  const Case c(RepeatedRead::get(), {{10000, 5}}, 1);
  CHECK(c.tensors[1].count() == 3 * 5);  // a word for each tile and reading
  const auto* words = input<uint32_t>(c, 0);
  std::vector<uint32_t> pieces(15);
  for (int turn = 0; turn < 5; ++turn) pieces[turn] = std::accumulate(words, words + 10000, uint32_t{0});
  CHECK(c.oracle->judge(1, pieces.data()) == "");
  pieces[4] = 0;
  CHECK(c.oracle->judge(1, pieces.data()).find("the sum of all readings is wrong") == 0);
  pieces[4] = pieces[3] - words[9999];
  CHECK(c.oracle->judge(1, pieces.data()) != "");
}

TEST_CASE("repeated multiply-adds: a step too few, too many or with two roundings changes all elements") {
  constexpr int64_t kCount = 3000, kSteps = 40;
  const Case c(RepeatedFma::get(), {{kCount, kSteps}}, 1);
  const auto after = [&](int64_t i, int64_t steps, bool fused) {
    volatile float x = input<float>(c, 0)[i];
    for (int64_t k = 0; k < steps; ++k) {
      const float before = x;
      volatile float square = before * before;
      x = fused ? std::fmaf(before, before, RepeatedFma::kShift) : square + RepeatedFma::kShift;
    }
    return static_cast<double>(x);
  };
  CHECK(c.oracle->is_exact(1));
  int64_t same = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    const double right = answer(c, 1, i);
    CHECK(right == after(i, kSteps, true));
    CHECK(std::abs(right) < 2.0);
    same += (right == after(i, kSteps - 1, true)) + (right == after(i, kSteps + 1, true)) +
            (right == after(i, kSteps, false)) + (right == after((i + 1) % kCount, kSteps, true));
  }
  CHECK(same < kCount / 100);
  CHECK(c.op.operations(c.shape) == 2.0 * kCount * kSteps);
}

TEST_CASE("products of halfs are whole numbers that float32 holds, however often they are added up") {
  const Case c(HalfProducts::get(), {{20000, 7}}, 1);
  CHECK(c.tensors[0].rows == 128);  // two tiles
  const auto* a = input<uint16_t>(c, 0);
  const auto* b = input<uint16_t>(c, 1);
  for (const int64_t i : {0, 1, 255, 256, 16383, 16384, 19999}) {
    double sum = 0, most = 0;
    for (int k = 0; k < 64; ++k) {
      const double product = Float16::value(a[i / 256 * 64 + k]) * Float16::value(b[i % 256 * 64 + k]);
      sum += product;
      most = std::max(most, std::abs(product));
    }
    CHECK(answer(c, 2, i) == 7.0 * sum);
    CHECK(most <= 16.0);
  }
  CHECK(Products::rounds({{1, 16384}}) == nullptr);
  CHECK(Products::rounds({{1, 16385}}) != nullptr);
  CHECK(c.op.operations({{256, 3}}) == 2.0 * 64 * 256 * 3);
}

TEST_CASE("products of int8 are sums modulo 2^32") {
  const Case c(Int8Products::get(), {{300, 1 << 20}}, 1);
  const auto* a = input<int8_t>(c, 0);
  const auto* b = input<int8_t>(c, 1);
  bool wrapped = false;
  for (int64_t i = 0; i < 300; ++i) {
    int64_t sum = 0;
    for (int k = 0; k < 128; ++k) sum += a[i / 256 * 128 + k] * b[i % 256 * 128 + k];
    CHECK(answer(c, 2, i) == static_cast<double>(static_cast<uint32_t>(sum << 20)));
    wrapped |= std::abs(sum) >> 11 > 0;
  }
  CHECK(wrapped);
}

TEST_CASE("what a roofline counts") {
  CHECK(RmsNorm::get().operations({{3, 1000}}) == 12000.0);
  CHECK(Sum::get().operations({{1000}}) == 1000.0);
  CHECK(Add::get().operations({{1000}}) == 1000.0);
  CHECK(GroupSum::get().operations({{1000}}) == 2000.0);
  CHECK(Copy::get().operations({{1000}}) == 0.0);
  CHECK(TypedRmsNorm::get({Type::bfloat16, Type::bfloat16, Type::bfloat16, {}}).operations({{3, 1000}}) == 12000.0);
  const TypedRmsNorm::Types residual{Type::float16, Type::float16, Type::float16, Type::float16};
  CHECK(TypedRmsNorm::get(residual).operations({{3, 1000}}) == 15000.0);
  CHECK_FALSE(RmsNorm::get().shows_operations());
  CHECK(RepeatedFma::get().shows_operations());
}
