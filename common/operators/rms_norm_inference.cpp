// Inputs, oracle and tolerance are TypedRmsNorm's.
#include "common/operators/rms_norm_inference.h"

#include <type_traits>

#include "common/operators/parts.h"
#include "common/operators/typed_rms_norm.h"

namespace ladder {
namespace rms_norm_inference {

enum Place { kX, kWeight, kY };

template <class T>
constexpr Type type_of = std::is_same_v<T, float> ? Type::float32 : Type::float16;

template <class T, class W>
class Description : public Operator {
 public:
  const char* title() const override { return typed_.title(); }
  std::vector<Parameter> parameters() const override { return typed_.parameters(); }
  std::vector<Scalar> scalars() const override { return {{"eps", 1e-6}}; }
  double operations(const Shape& shape) const override { return typed_.operations(shape); }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    std::vector<Tensor> all = typed_.tensors(shape);
    all[kWeight].optional = false;
    return all;
  }

  // One row and several, which different kernels serve; rows without a vector of 2, 4 or 8 elements, and the neighbours
  // of those that 128 threads share evenly.
  std::vector<Shape> edge_cases(bool) const override {
    std::vector<Shape> shapes = {{{0, 1024}}};
    for (const int64_t cols : {1, 7, 31, 128, 512, 1000, 1023, 1024, 1025, 4097}) shapes.push_back({{3, cols}});
    for (const int64_t cols : {2, 33, 1000, 1025, 4096}) shapes.push_back({{1, cols}});
    shapes.push_back({{59, 111}});
    return shapes;
  }

  // Each pointer off by one element; all of them; by as much as a vector of 4 or of 8 bytes.
  std::vector<Variant> variants(const Shape& shape) const override {
    const double eps = 1e-6, other = 1e-5;
    if (shape[1] != 1000) return norm_variants(*this, {{true, 0, 0, 0, eps}, {true, 1, 1, 1, other}});
    return norm_variants(*this, {{true, 0, 0, 0, eps},
                                 {true, 1, 1, 1, other},
                                 {true, 1, 0, 0, eps},
                                 {true, 0, 1, 0, eps},
                                 {true, 0, 0, 1, eps},
                                 {true, 2, 2, 2, eps},
                                 {true, 4, 4, 4, other}});
  }

  // Rows reach 480, whose square float16 cannot hold.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    typed_.fill(shape, tensor, seed, to);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return typed_.oracle(shape, inputs);
  }

 private:
  const Operator& typed_ = TypedRmsNorm::get({type_of<T>, type_of<W>, type_of<T>});
};

}  // namespace rms_norm_inference

template <class T, class W>
const Operator& RmsNormInference<T, W>::get() {
  static const rms_norm_inference::Description<T, W> description;
  return description;
}

template struct RmsNormInference<float>;
template struct RmsNormInference<float, __half>;
template struct RmsNormInference<__half>;

}  // namespace ladder
