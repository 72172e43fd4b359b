// The transpose, in another matrix and in its own memory: what is right, which faults are seen, and what is refused.
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "common/check.h"
#include "common/operators/transpose.h"

using namespace ladder;

namespace {

enum class Fault { none, unturned, two_exchanged, a_quiet_nan, tail_dropped };

// Through the host's memory; words, so that no NaN is changed on the way.
template <Fault fault>
void pretend(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t) {
  const int64_t count = rows * cols, size = count * static_cast<int64_t>(sizeof(uint32_t));
  if (count == 0) return;
  std::vector<uint32_t> from(count), to(count);
  CUDA_CHECK(cudaMemcpy(from.data(), input, size, cudaMemcpyDeviceToHost));
  for (int64_t i = 0; i < count; ++i) to[i % cols * rows + i / cols] = from[i];
  if (fault == Fault::unturned) to = from;
  if (fault == Fault::two_exchanged) std::swap(to[0], to[count - 1]);
  if (fault == Fault::a_quiet_nan)  // what arithmetic makes of a signalling NaN
    for (uint32_t& word : to)
      if (std::isnan(bits_as<float>(word))) word |= 0x00400000u;
  const int64_t dropped = fault == Fault::tail_dropped && rows % 4 != 0 ? 4 : 0;
  CUDA_CHECK(cudaMemcpy(output, to.data(), size - dropped, cudaMemcpyHostToDevice));
}

template <class Op, Fault fault>
std::string failure(const Shape& shape) {
  return check_shape(Stage<Op>{"transpose_v0", "on the host", pretend<fault>}, shape, 1, true).failure;
}
template <class Op, Fault fault>
std::string failure() {
  return EdgeCases(Op::get(), true, 1).check(Stage<Op>{"transpose_v0", "on the host", pretend<fault>}).failure;
}

bool says(const std::string& message, const std::string& part) { return message.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a right transpose passes every edge case, in place too") {
  CHECK(failure<Transpose, Fault::none>() == "");
  CHECK(failure<TransposeInPlace, Fault::none>() == "");
  CHECK(EdgeCases(Transpose::get(), true, 1).count() > 70);
}

TEST_CASE("a wrong one does not") {
  CHECK(says(failure<Transpose, Fault::unturned>(), "elements wrong"));
  CHECK(failure<Transpose, Fault::unturned>({{1, 33}}) == "");  // a row in memory is the column
  CHECK(says(failure<Transpose, Fault::two_exchanged>({{31, 33}}), "31 x 33, thread order forward: 2 of 1023"));
  CHECK(says(failure<Transpose, Fault::a_quiet_nan>({{1000, 1023}}), "elements wrong"));
  CHECK(says(failure<Transpose, Fault::tail_dropped>(), "(1 never written)"));
  CHECK(says(failure<TransposeInPlace, Fault::unturned>(), "output is input"));
}

TEST_CASE("the answer is the word of the other place, and both memories count") {
  const Case c(Transpose::get(), {{3, 5}}, 1);
  const auto* words = reinterpret_cast<const uint32_t*>(c.inputs[0].data());
  double expected[15], low[15], high[15];
  c.oracle->answer(Transpose::get().plain(), 1, 0, 15, {expected, low, high});
  for (int row = 0; row < 3; ++row)
    for (int col = 0; col < 5; ++col) CHECK(expected[col * 3 + row] == static_cast<double>(words[row * 5 + col]));
  double part[4];
  c.oracle->answer(Transpose::get().plain(), 1, 5, 4, {part, low, high});
  for (int i = 0; i < 4; ++i) CHECK(part[i] == expected[5 + i]);
  CHECK(Transpose::get().bytes({{3, 5}}, Transpose::get().plain()) == 120.0);
  CHECK(TransposeInPlace::get().bytes({{4, 4}}, TransposeInPlace::get().plain()) == 128.0);
  CHECK(TransposeInPlace::get().plain().places[1].same_as == 0);
}

TEST_CASE("shapes that no grid covers are refused") {
  CHECK(Transpose::one_block_per_tile<32>({{65536 * 32 + 1, 1}}) == nullptr);
  CHECK(Transpose::one_block_per_tile<32>({{0, 5}}) == nullptr);
  CHECK(Transpose::one_block_per_tile<32>({{int64_t{1} << 36, int64_t{1} << 36}}) != nullptr);
  CHECK(TransposeInPlace::is_square({{32, 32}}) == nullptr);
  CHECK(says(TransposeInPlace::is_square({{32, 33}}), "give equal rows and cols"));
}
