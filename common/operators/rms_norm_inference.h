// RMSNorm as an inference engine calls it: y = x / sqrt(mean(x²) + eps) · weight, for rows of type T and a weight of
// type W. There is always a weight, sums are float32, and a result is rounded once.
#pragma once
#include "common/stage.h"

struct __half;

namespace ladder {

template <class T, class W = T>
struct RmsNormInference {
  // x and y: rows × cols elements, contiguous; weight: cols elements. None is aligned to more than an element.
  using Launch = void (*)(const T* x, const W* weight, T* y, int64_t rows, int64_t cols, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  // The kernels count the elements of a row, and the rows of a grid, in 32 bits, as the document's do.
  static const char* refuses(const Shape& shape) {
    if (shape[0] > INT32_MAX) return "more rows than a grid has blocks for; give fewer rows";
    return shape[1] > INT32_MAX - 1024 ? "a row of more elements than an int counts; give fewer cols" : nullptr;
  }
};

using RmsNormAllF32 = RmsNormInference<float>;
using RmsNormF32Fp16w = RmsNormInference<float, __half>;
using RmsNormPureFp16 = RmsNormInference<__half>;

}  // namespace ladder

// Inputs, oracle and tolerance are TypedRmsNorm's.
#ifdef LADDER_OPERATOR
#include <type_traits>
#include <utility>

#include "common/operator.h"
#undef LADDER_OPERATOR  // the first part of this file: the second is compiled elsewhere
#include "common/operators/typed_rms_norm.h"
#define LADDER_OPERATOR

namespace ladder {
namespace rms_norm_inference {

enum Place { kX, kWeight, kY };

template <class T>
constexpr Type type_of = std::is_same_v<T, float> ? Type::float32 : Type::float16;

// TypedRmsNorm's answers, without an offset of the weight and with one rounding.
class Answer : public Oracle {
 public:
  explicit Answer(std::unique_ptr<Oracle> typed) : typed_(std::move(typed)) {}

  double tolerance() const override { return typed_->tolerance(); }
  void answer(const Variant& variant, int tensor, int64_t first, int64_t count, const Answers& to) const override {
    typed_->answer({variant.places, {variant.scalars[0], 0.0, 0.0}}, tensor, first, count, to);
  }

 private:
  std::unique_ptr<Oracle> typed_;
};

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

  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<typename RmsNormInference<T, W>::Launch>(launch)(a.tensor<const T>(kX), a.tensor<const W>(kWeight),
                                                                      a.tensor<T>(kY), a.shape[0], a.shape[1],
                                                                      static_cast<float>(a.scalars[0]), stream);
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
    struct Row {
      int x, weight, y;
      double eps;
    };
    const std::vector<Row> few = {{0, 0, 0, 1e-6}, {1, 1, 1, 1e-5}};
    const std::vector<Row> many = {{0, 0, 0, 1e-6}, {1, 1, 1, 1e-5}, {1, 0, 0, 1e-6}, {0, 1, 0, 1e-6},
                                   {0, 0, 1, 1e-6}, {2, 2, 2, 1e-6}, {4, 4, 4, 1e-5}};
    std::vector<Variant> result;
    for (const Row& row : shape[1] == 1000 ? many : few) {
      Variant variant = plain();
      variant.places[kX].offset = row.x;
      variant.places[kWeight].offset = row.weight;
      variant.places[kY].offset = row.y;
      variant.scalars[0] = row.eps;
      result.push_back(variant);
    }
    return result;
  }

  // Rows reach 480, whose square float16 cannot hold.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    typed_.fill(shape, tensor, seed, to);
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(typed_.oracle(shape, inputs));
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
#endif  // LADDER_OPERATOR
