// Inputs, oracle and tolerance are TypedRmsNorm's.
#include "common/operators/rms_norm_serving.h"

#include <memory>

#include "common/operator.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace rms_norm_serving {

using Typed = TypedRmsNorm;
constexpr int kRowGap = RmsNormServing::kRowGap;

class Description : public Operator {
 public:
  Description(bool adds_residual, bool llama) : adds_residual_(adds_residual), llama_(llama) {}

  const char* title() const override { return adds_residual_ ? "fused_add_rms_norm" : "rms_norm"; }
  std::vector<Parameter> parameters() const override {
    return {{"num-tokens", 0, 4096, "Rows of the main input"},
            {"hidden-size", 1, 8192, "Columns of the main input"},
            {"dtype", 0, 0, "Type of all elements", {"half", "bfloat16", "float"}}};
  }
  std::vector<Scalar> scalars() const override {
    return {{"eps", 1e-6}, {"weight offset", 0.0}, {"llama", llama_ ? 1.0 : 0.0}, {"row gap", 0.0}};
  }
  std::vector<Tensor> tensors(const Shape& shape) const override {
    std::vector<Tensor> all = typed(shape).tensors(shape);
    all[Typed::kWeight].optional = false;
    return all;
  }

  double operations(const Shape& shape) const override { return typed(shape).operations(shape); }

  // The document's own (7 tokens, 8 columns), and sizes around those of warps, vectors and blocks. From 256 tokens on
  // blocks are smaller.
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes = {{{0, 1024, 0}}, {{1, 1, 1}}, {{7, 8, 0}}, {{257, 264, 1}}};
    for (const int64_t dtype : {0, 1, 2})
      for (const int64_t cols : {7, 33, 1000, 1025, 8193}) shapes.push_back({{3, cols, dtype}});
    return shapes;
  }

  // Contiguous; with a gap between rows that keeps the alignment of each; with one that does not, and another eps; with
  // every pointer off by an element.
  std::vector<Variant> variants(const Shape& shape) const override {
    std::vector<Variant> result(4, plain());
    const auto leave_gap = [&](Variant& variant, int64_t gap) {
      variant.places[Typed::kX].layout.stride = shape[1] + gap;
      variant.scalars[kRowGap] = static_cast<double>(gap);
    };
    leave_gap(result[1], 64);
    leave_gap(result[2], 3);
    result[2].scalars[Typed::kEps] = 1e-5;
    for (Place& place : result[3].places) place.offset = 1;
    return result;
  }

  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    typed(shape).fill(shape, tensor, seed, to);
  }
  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return typed(shape).oracle(shape, inputs);
  }

  Variant plain() const override {
    Variant variant = Operator::plain();
    if (adds_residual_) {
      variant.places[Typed::kY].same_as = Typed::kX;
      variant.places[Typed::kResidualOut].same_as = Typed::kResidual;
    }
    return variant;
  }

 private:
  const Operator& typed(const Shape& shape) const {
    constexpr Type types[] = {Type::float16, Type::bfloat16, Type::float32};
    const Type type = types[shape[2]];
    Typed::Types all{type, type, type};
    if (adds_residual_) all.residual = type;
    return Typed::get(all);
  }

  bool adds_residual_, llama_;
};

}  // namespace rms_norm_serving

template <bool adds_residual, bool llama>
const Operator& ServingNorm<adds_residual, llama>::get() {
  static const rms_norm_serving::Description description(adds_residual, llama);
  return description;
}

template struct ServingNorm<false, true>;
template struct ServingNorm<true, true>;
template struct ServingNorm<true, false>;

}  // namespace ladder
