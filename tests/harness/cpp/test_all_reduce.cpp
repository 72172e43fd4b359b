// The oracle of all-reduce, residual and norm: right results lie within its bounds on every rank, and a partial result
// that is missing or counted twice, a row of another shard or a number two steps off do not.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "common/check.h"
#include "common/operators/all_reduce_rms_norm.h"

using namespace ladder;
using namespace ladder::all_reduce_rms_norm;

namespace {

constexpr Shape kShape{{5, 37, 3}};

struct Given {
  Case given;
  Variant variant;

  explicit Given(const Operator& op) : given(op, kShape, 11), variant(op.plain()) {}
  double at(int rank, Part part, int64_t i) const {
    return element(Type::bfloat16, given.inputs[rank * kParts + part].data(), i);
  }
  bool is_right(int rank, Part part, int64_t i, double got) const {
    double expected, low, high;
    given.oracle->answer(variant, rank * kParts + part, i, 1, {&expected, &low, &high});
    return got >= low && got <= high;
  }
};

double rounded16(double value) { return static_cast<double>(rounded(Type::bfloat16, static_cast<float>(value))); }

// kept of all rows, with a factor for each rank's partial result.
std::vector<double> kept_of(const Given& all, const std::vector<double>& residual, std::vector<double> factors) {
  std::vector<double> kept(kShape[0] * kShape[1]);
  for (size_t i = 0; i < kept.size(); ++i) {
    double sum = residual[i];
    for (int rank = 0; rank < kShape[2]; ++rank) sum += factors[rank] * all.at(rank, kPartial, static_cast<int64_t>(i));
    kept[i] = rounded16(sum);
  }
  return kept;
}

}  // namespace

TEST_CASE("all_reduce_rms_norm: right results are right on every rank, and a partial result too few is wrong") {
  const Given all(AllReduceRmsNorm::get());
  const int64_t cols = kShape[1];
  std::vector<double> residual(kShape[0] * cols);
  for (size_t i = 0; i < residual.size(); ++i) residual[i] = all.at(0, kResidual, static_cast<int64_t>(i));
  const std::vector<double> kept = kept_of(all, residual, {1, 1, 1}), missing = kept_of(all, residual, {1, 0, 1}),
                            twice = kept_of(all, residual, {2, 0, 1});
  for (int rank = 0; rank < kShape[2]; ++rank) {
    int64_t seen_missing = 0, seen_twice = 0, seen_steps = 0;
    for (int64_t row = 0; row < kShape[0]; ++row) {
      double squares = 0;
      for (int64_t col = 0; col < cols; ++col) squares += kept[row * cols + col] * kept[row * cols + col];
      const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(cols) + 1e-6);
      for (int64_t col = 0; col < cols; ++col) {
        const int64_t i = row * cols + col;
        CHECK(all.is_right(rank, kKept, i, kept[i]));
        CHECK(all.is_right(rank, kY, i, rounded16(kept[i] * rstd * all.at(rank, kWeight, col))));
        seen_missing += !all.is_right(rank, kKept, i, missing[i]);
        seen_twice += !all.is_right(rank, kKept, i, twice[i]);
        seen_steps += !all.is_right(rank, kKept, i, rounded16(kept[i] * (1.0 + 0x1p-6)));
      }
    }
    CHECK(seen_missing > 100);
    CHECK(seen_twice > 100);
    CHECK(seen_steps > 100);
  }
}

TEST_CASE("all_reduce_rms_norm: a sharded residual has the rows of its rank") {
  const Given all(AllReduceRmsNormSharded::get());
  const int64_t cols = kShape[1], shard = shard_rows(kShape[0], kShape[2]);
  std::vector<double> residual(kShape[0] * cols);
  for (int64_t i = 0; i < kShape[0] * cols; ++i)
    residual[i] = all.at(static_cast<int>(i / cols / shard), kResidual, i - i / cols / shard * shard * cols);
  const std::vector<double> kept = kept_of(all, residual, {1, 1, 1});
  CHECK(all.given.tensors[2 * kParts + kKept].rows == 1);
  for (int64_t col = 0; col < cols; ++col) {
    CHECK(all.is_right(0, kKept, col, kept[col]));
    CHECK(all.is_right(1, kKept, col, kept[2 * cols + col]));
    CHECK(all.is_right(2, kKept, col, kept[4 * cols + col]));
  }
  int64_t wrong = 0;
  for (int64_t col = 0; col < cols; ++col) wrong += !all.is_right(1, kKept, col, kept[col]);
  CHECK(wrong > 20);
}

TEST_CASE("all_reduce_rms_norm: from how many rows on two shots are taken, as the page of 09_by_size says") {
  CHECK(fewest_sharded(2) == 256);
  CHECK(fewest_sharded(3) == 192);
  CHECK(fewest_sharded(4) == 85);
  CHECK(fewest_sharded(8) == 24);
}
