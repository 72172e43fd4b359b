#include "common/operators/q4_product.h"

#include <cstring>
#include <list>

#include "common/operators/parts.h"
#include "common/operators/q4_parts.h"

namespace ladder {
namespace q4_product {

using Op = Q4Product;

// Calls body with the form of the weights.
template <class Body>
auto with_form(const Op::Types& types, const Shape& shape, Body body) {
  const int64_t m = shape[0], blocks = shape[2] / kBlock;
  return types.repacked ? body(q4::Form<Fragments>{m, blocks}) : body(q4::Form<const block_q4_0*>{m, blocks});
}

double unit_roundoff(Type type) { return type == Type::float16 ? 0x1p-11 : type == Type::bfloat16 ? 0x1p-8 : 0.0; }

class Answer : public Oracle {
 public:
  Answer(const Op::Types& types, const Shape& shape, const std::vector<const void*>& inputs)
      : types_(types),
        m_(shape[0]),
        k_(shape[2]),
        bias_(types.bias ? inputs[Op::kBias] : nullptr),
        weights_(with_form(types, shape, [&](const auto& form) { return rows_of(form, inputs[Op::kWeights]); })),
        x_(shape[1], k_) {
    x_.fill([&](int64_t b, int8_t* to) {
      float numbers[kBlock];
      for (int i = 0; i < kBlock; ++i)
        numbers[i] = static_cast<float>(element(types.x, inputs[Op::kX], b * kBlock + i));
      const block_q8_1 block = quantized_q8_1(numbers);
      std::memcpy(to, block.qs, kBlock);
      return block.d;
    });
  }

  // As in q4_gemm.cpp, and one addition more, of the bias.
  double tolerance() const override {
    const double all = static_cast<double>(k_ / kBlock + 11) * 0x1p-24;
    return all / (1.0 - all) + unit_roundoff(types_.y);
  }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    const double error = tolerance() - unit_roundoff(types_.y);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = (first + i) % m_, column = (first + i) / m_;
      const double bias = bias_ ? element(*types_.bias, bias_, row) : 0.0;
      const q4::Element product = q4::product(weights_[row], x_[column], k_ / kBlock);
      const double sum = bias + product.sum, magnitudes = std::abs(bias) + product.magnitudes;
      to.expected[i] = sum;
      to.low[i] = rounded(sum - error * magnitudes);
      to.high[i] = rounded(sum + error * magnitudes);
    }
  }

 private:
  // Rounding is monotonic: the bounds of the exact value give those of the rounded one.
  double rounded(double value) const {
    if (types_.y == Type::float32) return value;
    return with(types_.y, [=](auto t) { return t.value(t.from(static_cast<float>(value))); });
  }

  Op::Types types_;
  int64_t m_, k_;
  const void* bias_;
  q4::Rows weights_, x_;
};

class Description : public Operator {
 public:
  explicit Description(const Op::Types& types) : types_(types) {}
  bool is_of(const Op::Types& t) const {
    return t.x == types_.x && t.y == types_.y && t.bias == types_.bias && t.repacked == types_.repacked;
  }

  const char* title() const override { return "q4_0 x floats matrix multiply"; }
  std::vector<Parameter> parameters() const override {
    return {{"m", 1, 4096, "Rows of the weights, and of the result"},
            {"n", 1, 1, "Columns of x, and of the result"},
            {"k", kBlock, 14336, "Weights of a row, a multiple of 32", {}, kBlock}};
  }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const int64_t m = shape[0], n = shape[1], k = shape[2];
    std::vector<Tensor> all = {{"y", types_.y, Role::output, n, m},
                               with_form(types_, shape, [](const auto& form) { return weights_tensor(form); }),
                               {"x", types_.x, Role::input, n, k}};
    if (types_.bias) all.push_back(vector_tensor("bias", *types_.bias, Role::input, m));
    return all;
  }
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) * static_cast<double>(shape[2]);
  }
  bool shows_operations() const override { return true; }

  // One block; odd numbers of blocks; rows, columns and k around those of tiles.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t k : {32, 64, 96, 128, 160, 288, 1056}) shapes.push_back({{5, 3, k}});
    for (const int64_t m : {1, 15, 16, 17, 63, 64, 65, 129, 257}) shapes.push_back({{m, 1, 160}});
    for (const int64_t n : {1, 2, 7, 8, 9, 15, 16, 17, 33, 65}) shapes.push_back({{6, n, 288}});
    shapes.push_back({{cpu_device ? 331 : 989, 5, 1312}});
    shapes.push_back({{1, 1, 14336}});
    shapes.push_back({{70, 9, 1056}});  // columns of so many numbers that a kernel of its own quantizes them
    // Enough k for warps that share it, and for a ring of copies to come round, which the CPU device takes minutes for.
    shapes.push_back({{70, 20, cpu_device ? 2080 : 40992}});
    return shapes;
  }

  // Contiguous; all pointers as little aligned as they may be; x and y of several columns with gaps in between.
  std::vector<Variant> variants(const Shape& shape) const override {
    std::vector<Variant> result(shape[1] > 1 ? 3 : 2, plain());
    for (size_t i = 0; i < result[1].places.size(); ++i)
      result[1].places[i].offset = i == Op::kWeights && types_.repacked ? 4 : 1;
    if (shape[1] > 1) {
      result[2].places[Op::kX].layout = {shape[2] + 8};
      result[2].places[Op::kY].layout = {shape[0] + 1};
    }
    return result;
  }

  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    if (tensor == Op::kWeights) return with_form(types_, shape, [=](const auto& form) { draw_weights(form, key, to); });
    const Tensor all = tensors(shape)[tensor];
    for (int64_t i = 0; i < all.rows * all.cols; ++i) {
      // Blocks differ in scale by a factor of 4 and one of 64 is zero, so that no scale may be another's.
      const uint32_t of_block = hash32(key ^ 0x51ed27u, i / kBlock);
      const float scale = of_block % 64 == 0 ? 0.0f : 0.5f + static_cast<float>(of_block >> 8) * 0x1.8p-24f;
      set_element(all.type, to, i, uniform(hash32(key, i)) * scale);
    }
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(types_, shape, inputs);
  }

 private:
  Op::Types types_;
};

}  // namespace q4_product

const Operator& Q4Product::get(Types types) {
  static std::list<q4_product::Description> all;
  for (const auto& known : all)
    if (known.is_of(types)) return known;
  return all.emplace_back(types);
}

}  // namespace ladder
