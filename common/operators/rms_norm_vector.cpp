// It is a matrix of one row, whose inputs, oracle and tolerance it shares, and has other edge cases.
#include "common/operators/rms_norm_vector.h"

#include "common/operators/parts.h"
#include "common/operators/rms_norm.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace rms_norm_vector {

enum Place { kInput, kWeight, kOutput, kScratch };

Shape one_row(const Shape& shape) { return {{1, shape[0]}}; }

class Description : public Operator {
 public:
  // matrix: whose first three tensors are input, weight and output
  explicit Description(const Operator& matrix) : matrix_(matrix) {}

  const char* title() const override { return matrix_.title(); }
  std::vector<Parameter> parameters() const override { return {{"n", 1, 1 << 20, "Elements of the main input"}}; }
  std::vector<Scalar> scalars() const override { return matrix_.scalars(); }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    std::vector<Tensor> all = matrix_.tensors(one_row(shape));
    all.push_back({"scratch", Type::float32, Role::scratch, 1, RmsNormVector::kScratch});
    all[kScratch].shared = true;
    for (Tensor& tensor : all) tensor.is_matrix = false;
    return all;
  }

  // Sizes around those of warps, blocks, vectors and a block's share; long rows after short ones and before them, since
  // blocks may find what an earlier launch left; one that no power of two divides.
  std::vector<Shape> edge_cases(bool) const override {
    return shapes_of({1,    2,    3,    4,    7,    31, 32,    33,    127,   129,    1000, 1023,    1024,
                      1025, 4095, 8191, 8192, 8193, 5,  32768, 32773, 65537, 262147, 257,  1000003, 1048577});
  }

  // With and without weight, each pointer off by one element; a kernel with its own eps fails one of two.
  std::vector<Variant> variants(const Shape& shape) const override {
    const double eps = 1e-6, other = 1e-5;
    if (shape[0] > 1 << 16) return norm_variants(*this, {{false, 0, 0, 0, eps}, {true, 1, 1, 1, other}});
    return norm_variants(*this, {{false, 0, 0, 0, eps},
                                 {true, 0, 0, 0, other},
                                 {false, 1, 0, 0, other},
                                 {false, 0, 0, 1, eps},
                                 {false, 1, 0, 1, eps},
                                 {true, 0, 1, 0, eps},
                                 {true, 1, 0, 1, other},
                                 {true, 3, 3, 3, other}});
  }

  double operations(const Shape& shape) const override { return matrix_.operations(one_row(shape)); }

  // A matrix has rows near 1e-3, where eps matters. Here every fifth length has such a row: 3, 33, 1023, 8193.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    matrix_.fill(one_row(shape), tensor, seed, to);
    if (tensor != kInput || shape[0] % 5 != 3) return;
    const Type type = matrix_.tensors({})[kInput].type;
    for (int64_t i = 0; i < shape[0]; ++i) set_element(type, to, i, 1e-3 * element(type, to, i));
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return matrix_.oracle(one_row(shape), inputs);
  }

 private:
  const Operator& matrix_;
};

}  // namespace rms_norm_vector

const Operator& RmsNormVector::get() {
  static const rms_norm_vector::Description description(RmsNorm::get());
  return description;
}

const Operator& RmsNormVectorBfloat16::get() {
  static const rms_norm_vector::Description description(
      TypedRmsNorm::get({Type::bfloat16, Type::bfloat16, Type::bfloat16}));
  return description;
}

}  // namespace ladder
