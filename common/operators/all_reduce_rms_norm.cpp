#include "common/operators/all_reduce_rms_norm.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "common/operators/parts.h"
#include "common/operators/rms_norm_parts.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace all_reduce_rms_norm {

constexpr double u = 0x1p-24, u16 = 0x1p-8;  // the unit roundoffs of float32 and bfloat16
constexpr Type kType = Type::bfloat16;

bool is_sharded(Residual residual, const Shape& shape) {
  return residual == Residual::sharded || (residual == Residual::by_size && shape[0] >= fewest_sharded(shape[2]));
}

struct Rows {
  int64_t first, count;
};
Rows shard(const Shape& shape, int64_t rank) {
  const int64_t most = shard_rows(shape[0], shape[2]), first = std::min(rank * most, shape[0]);
  return {first, std::min(most, shape[0] - first)};
}

float rounded16(double value) { return rounded(kType, static_cast<float>(value)); }

class Answer : public Oracle {
 public:
  Answer(const Shape& shape, const std::vector<const void*>& inputs, Sums sums, Residual residual)
      : shape_(shape),
        sums_(sums),
        sharded_(is_sharded(residual, shape)),
        weight_(rms_norm::as_floats(kType, inputs[kWeight], shape[1])),
        low_(new float[count()]),
        high_(new float[count()]),
        kept_(new double[count()]),
        least_(shape[0]),
        exact_(shape[0]),
        most_(shape[0]),
        error_(TypedRmsNorm::float_error(shape[1])) {
    const int64_t ranks = shape[2];
    std::vector<rms_norm::Floats> partials, residuals;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      partials.push_back(rms_norm::as_floats(kType, inputs[rank * kParts + kPartial], count()));
      const int64_t rows = sharded_ ? shard(shape, rank).count : rank == 0 ? shape[0] : 0;
      residuals.push_back(rms_norm::as_floats(kType, inputs[rank * kParts + kResidual], rows * shape[1]));
    }
    parallel_for(shape[0], std::max<int64_t>(1, (1 << 16) / shape[1]), [&](int, int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t owner = sharded_ ? row / shard_rows(shape[0], ranks) : 0;
        const float* residual = residuals[owner].get() + (row - (sharded_ ? shard(shape, owner).first : 0)) * shape[1];
        add_row(row, partials, residual);
      }
    });
  }

  // The rounding of kept, that of y, and what float32 loses.
  double tolerance() const override { return error_ + 2.0 * u16 + (sums_ == Sums::each ? u16 * ranks() : 0.0); }

  void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const override {
    const int64_t rank = tensor / kParts;
    if (tensor % kParts == kKept) {
      const int64_t begin = first + (sharded_ ? shard(shape_, rank).first * shape_[1] : 0);
      for (int64_t i = 0; i < count; ++i) {
        to.expected[i] = kept_[begin + i];
        to.low[i] = static_cast<double>(low_[begin + i]);
        to.high[i] = static_cast<double>(high_[begin + i]);
      }
      return;
    }
    const double eps = static_cast<double>(static_cast<float>(variant.scalars[0]));
    for_parts_of_rows(first, count, shape_[1], [&](int64_t row, int64_t col, int64_t done, int64_t length) {
      for (int64_t i = 0; i < length; ++i) {
        const int64_t at = row * shape_[1] + col + i;
        const double weight = static_cast<double>(weight_[col + i]);
        // rstd is largest where the squares are least; a product of two intervals lies between its corners.
        const double smallest = 1.0 / std::sqrt(most_[row] + eps), largest = 1.0 / std::sqrt(least_[row] + eps);
        const double a = static_cast<double>(low_[at]) * weight, b = static_cast<double>(high_[at]) * weight;
        const auto [low, high] = std::minmax({a * smallest, a * largest, b * smallest, b * largest});
        const double slack = error_ * std::max(std::abs(low), std::abs(high)) + 0x1p-140;
        to.expected[done + i] = kept_[at] * weight / std::sqrt(exact_[row] + eps);
        to.low[done + i] = static_cast<double>(rounded16(low - slack));
        to.high[done + i] = static_cast<double>(rounded16(high + slack));
      }
    });
  }

  std::string cause(int tensor, const Wrong& wrong) const override {
    return tensor % kParts == kY ? rms_norm::cause_of(wrong.factor) : "";
  }

 private:
  int64_t count() const { return shape_[0] * shape_[1]; }
  double ranks() const { return static_cast<double>(shape_[2]); }

  // Each addition in float32 loses u of the sum of magnitudes, each rounding to bfloat16 u16 of it; 1 % covers that the
  // sums so far have errors, too. Rounding is monotonic, so the bounds of the exact sum give those of kept.
  void add_row(int64_t row, const std::vector<rms_norm::Floats>& partials, const float* residual) {
    double least = 0.0, exact = 0.0, most = 0.0;
    for (int64_t col = 0; col < shape_[1]; ++col) {
      const int64_t at = row * shape_[1] + col;
      double sum = 0.0, magnitudes = 0.0;
      for (const rms_norm::Floats& partial : partials) {
        sum += static_cast<double>(partial[at]);
        magnitudes += std::abs(static_cast<double>(partial[at]));
      }
      double slack = sums_ == Sums::each ? 1.01 * (ranks() - 1.0) * u16 * magnitudes : 0.0;
      sum += static_cast<double>(residual[col]);
      magnitudes += std::abs(static_cast<double>(residual[col]));
      slack += 1.01 * ranks() * u * magnitudes;
      kept_[at] = sum;
      low_[at] = rounded16(sum - slack);
      high_[at] = rounded16(sum + slack);
      const auto square = [](float x) { return static_cast<double>(x) * static_cast<double>(x); };
      const double a = square(low_[at]), b = square(high_[at]), middle = square(rounded16(sum));
      least += low_[at] < 0.0f && high_[at] > 0.0f ? 0.0 : std::min(a, b);
      exact += middle;
      most += std::max(a, b);
    }
    const double cols = static_cast<double>(shape_[1]);
    least_[row] = least / cols;
    exact_[row] = exact / cols;
    most_[row] = most / cols;
  }

  Shape shape_;
  Sums sums_;
  bool sharded_;
  rms_norm::Floats weight_, low_, high_;      // bounds of kept
  std::unique_ptr<double[]> kept_;            // exact, before its rounding
  std::vector<double> least_, exact_, most_;  // mean(kept²) of each row
  double error_;
};

class Description : public Operator {
 public:
  Description(Sums sums, Residual residual) : sums_(sums), residual_(residual) {}

  const char* title() const override { return "all-reduce, residual addition and RMSNorm"; }
  std::vector<Parameter> parameters() const override {
    return {{"rows", 0, 64, "Rows of the main input"},
            {"cols", 1, 4096, "Columns of the main input"},
            {"ranks", 2, 2, "GPUs of one host that the sum goes over", {}, 1, kMostRanks}};
  }
  std::vector<Scalar> scalars() const override { return {{"eps", 1e-6}}; }
  int devices(const Shape& shape) const override {
    return static_cast<int>(std::clamp<int64_t>(shape[2], 1, kMostRanks));
  }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    static const std::vector<std::array<std::string, kParts>> names = [] {
      std::vector<std::array<std::string, kParts>> all(kMostRanks);
      for (int rank = 0; rank < kMostRanks; ++rank) {
        const std::string of = " of rank " + std::to_string(rank);
        all[rank] = {"partial" + of, "residual" + of, "weight" + of, "kept" + of, "y" + of};
      }
      return all;
    }();
    const bool sharded = is_sharded(residual_, shape);
    std::vector<Tensor> all;
    for (int rank = 0; rank < kMostRanks; ++rank) {
      const bool is_there = rank < shape[2];
      const int64_t rows = is_there ? shape[0] : 0, kept_rows = is_there && sharded ? shard(shape, rank).count : rows;
      const auto add = [&](Part part, Role role, int64_t count) {
        Tensor tensor{names[rank][part].c_str(), kType, role, count, shape[1]};
        tensor.device = is_there ? rank : -1;
        tensor.shared = part == kWeight;
        const bool has_twin = part == kY || (part == kKept && !sharded);
        tensor.twin = has_twin && rank > 0 && is_there ? part : -1;
        all.push_back(tensor);
      };
      add(kPartial, Role::input, rows);
      add(kResidual, Role::input, kept_rows);
      add(kWeight, Role::input, is_there ? 1 : 0);
      add(kKept, Role::output, kept_rows);
      add(kY, Role::output, rows);
    }
    return all;
  }

  // Fewer and more rows than ranks, rows that the ranks do not divide; columns that no vector divides, and those of
  // models; each number of ranks.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes = {{{3, 1000, 2}}, {{0, 1024, 2}}, {{1, 4096, 2}}, {{3, 1001, 2}}, {{64, 264, 2}},
                                 {{5, 1000, 3}}, {{12, 264, 4}}, {{90, 40, 4}},  {{9, 33, 8}}};
    if (cpu_device) return shapes;
    for (const Shape& more : {Shape{{64, 4096, 2}}, Shape{{1, 5120, 2}}, Shape{{3, 8192, 2}}, Shape{{989, 1000, 2}},
                              Shape{{64, 8191, 2}}, Shape{{300, 4096, 4}}, Shape{{16, 8192, 8}}})
      shapes.push_back(more);
    return shapes;
  }
  // As they come; every pointer off by an element.
  std::vector<Variant> variants(const Shape&) const override {
    std::vector<Variant> result(2, plain());
    for (Place& place : result[1].places) place.offset = 1;
    result[1].scalars[0] = 1e-5;
    return result;
  }

  // Rows of zeros have both signs of zero; the ranks' rows differ in everything but their scale.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    static constexpr float scales[] = {1.0f, 0.0f, 30.0f, 0.25f, 1e-3f, 3.0f, 2.0f};
    using T = Bfloat16;
    const int rank = tensor / kParts, place = tensor % kParts;
    const uint64_t key = mix64(seed ^ 0x5eed);
    if (place == kWeight)
      return fill_each<T::Stored>(to, rank < shape[2] ? shape[1] : 0,
                                  [=](int64_t col) { return T::from(weight_like(key, col)); });
    const int64_t rows = tensors(shape)[tensor].rows;
    // The residual is one matrix of which ranks have all rows or some.
    if (place == kResidual && is_sharded(residual_, shape) && rank < shape[2]) {
      std::vector<T::Stored> whole(shape[0] * shape[1]);
      rms_norm::fill_rows<T>(whole.data(), shape[0], shape[1], seed + 77, scales);
      std::copy_n(whole.data() + shard(shape, rank).first * shape[1], rows * shape[1], static_cast<T::Stored*>(to));
      return;
    }
    rms_norm::fill_rows<T>(to, rows, shape[1], seed + (place == kResidual ? 77 : static_cast<uint64_t>(rank)), scales);
    // In the first row of more than two ranks the first and the last cancel each other: in another order the sum has
    // other bits.
    if (place != kPartial || rows == 0 || shape[2] < 3 || (rank > 0 && rank < shape[2] - 1)) return;
    for (int64_t col = 0; col < shape[1]; ++col) {
      const float large = 16384.0f + static_cast<float>(mix64(key + static_cast<uint64_t>(col)) % 16384);
      static_cast<T::Stored*>(to)[col] = T::from(rank == 0 ? large : -large);
    }
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(shape, inputs, sums_, residual_);
  }

  // On one GPU.
  double bytes(const Shape& shape, const Variant&) const override {
    double total = 0;
    const std::vector<Tensor> all = tensors(shape);
    for (int place = 0; place < kParts; ++place) total += all[place].bytes();
    return total;
  }
  double operations(const Shape& shape) const override {
    return (4.0 + static_cast<double>(shape[2])) * static_cast<double>(shape[0]) * static_cast<double>(shape[1]);
  }

 private:
  Sums sums_;
  Residual residual_;
};

}  // namespace all_reduce_rms_norm

template <Sums sums, Residual residual>
const Operator& AllReduceNorm<sums, residual>::get() {
  static const all_reduce_rms_norm::Description description(sums, residual);
  return description;
}

template struct AllReduceNorm<Sums::once, Residual::everywhere>;
template struct AllReduceNorm<Sums::once, Residual::sharded>;
template struct AllReduceNorm<Sums::once, Residual::by_size>;
template struct AllReduceNorm<Sums::each, Residual::everywhere>;
template struct AllReduceNorm<Sums::each, Residual::sharded>;

}  // namespace ladder
