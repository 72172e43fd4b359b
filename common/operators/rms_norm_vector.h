// RMSNorm of one row, which many blocks share: y = x / sqrt(mean(x²) + eps) · weight.
#pragma once
#include "common/stage.h"

namespace ladder {

struct RmsNormVector {
  // input and output: n floats, not necessarily aligned beyond 4 bytes; weight: n floats or nullptr. scratch: kScratch
  // floats, aligned to 256 bytes, for what blocks have to say to each other. All launches get the same scratch memory,
  // as those of one stream would in a library; its contents before a launch are unknown.
  using Launch = void (*)(const float* input, const float* weight, float* output, float* scratch, int64_t n, float eps,
                          cudaStream_t stream);
  static const Operator& get();

  static constexpr int kScratch = 4096;
};

// The same with input, weight and output of bfloat16. Sums are float32, and a result is rounded once.
struct RmsNormVectorBfloat16 {
  using Launch = void (*)(const void* input, const void* weight, void* output, float* scratch, int64_t n, float eps,
                          cudaStream_t stream);
  static const Operator& get();
};

}  // namespace ladder

// It is a matrix of one row, whose inputs, oracle and tolerance it shares, and has other edge cases.
#ifdef LADDER_OPERATOR
#include "common/operator.h"
#undef LADDER_OPERATOR  // the first part of these files: the second is compiled elsewhere
#include "common/operators/rms_norm.h"
#include "common/operators/typed_rms_norm.h"
#define LADDER_OPERATOR

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
    std::vector<Shape> shapes;
    for (const int64_t n : {1,    2,    3,    4,    7,    31, 32,    33,    127,   129,    1000, 1023,    1024,
                            1025, 4095, 8191, 8192, 8193, 5,  32768, 32773, 65537, 262147, 257,  1000003, 1048577})
      shapes.push_back({{n}});
    return shapes;
  }

  // With and without weight, each pointer off by one element; a kernel with its own eps fails one of two.
  std::vector<Variant> variants(const Shape& shape) const override {
    struct Row {
      bool weight;
      int input, output, weight_offset;
      double eps;
    };
    const double eps = 1e-6, other = 1e-5;
    const std::vector<Row> few = {{false, 0, 0, 0, eps}, {true, 1, 1, 1, other}};
    const std::vector<Row> many = {{false, 0, 0, 0, eps},  {true, 0, 0, 0, other}, {false, 1, 0, 0, other},
                                   {false, 0, 1, 0, eps},  {false, 1, 1, 0, eps},  {true, 0, 0, 1, eps},
                                   {true, 1, 1, 0, other}, {true, 3, 3, 3, other}};
    std::vector<Variant> result;
    for (const Row& row : shape[0] > 1 << 16 ? few : many) {
      Variant variant = plain();
      variant.places[kInput].offset = row.input;
      variant.places[kOutput].offset = row.output;
      variant.places[kWeight].offset = row.weight_offset;
      variant.places[kWeight].absent = !row.weight;
      variant.scalars[0] = row.eps;
      result.push_back(variant);
    }
    return result;
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

class Float32 : public Description {
 public:
  Float32() : Description(RmsNorm::get()) {}
  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<RmsNormVector::Launch>(launch)(a.tensor<float>(kInput), a.tensor<float>(kWeight),
                                                    a.tensor<float>(kOutput), a.tensor<float>(kScratch), a.shape[0],
                                                    static_cast<float>(a.scalars[0]), stream);
  }
};

class Bfloat16 : public Description {
 public:
  Bfloat16() : Description(TypedRmsNorm::get({Type::bfloat16, Type::bfloat16, Type::bfloat16})) {}
  void launch(AnyLaunch launch, const Arguments& a, cudaStream_t stream) const override {
    reinterpret_cast<RmsNormVectorBfloat16::Launch>(launch)(a.tensors[kInput], a.tensors[kWeight], a.tensors[kOutput],
                                                            a.tensor<float>(kScratch), a.shape[0],
                                                            static_cast<float>(a.scalars[0]), stream);
  }
};

}  // namespace rms_norm_vector

const Operator& RmsNormVector::get() {
  static const rms_norm_vector::Float32 description;
  return description;
}

const Operator& RmsNormVectorBfloat16::get() {
  static const rms_norm_vector::Bfloat16 description;
  return description;
}

}  // namespace ladder
#endif  // LADDER_OPERATOR
