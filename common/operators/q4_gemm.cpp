#include "common/operators/q4_gemm.h"

#include <cstring>
#include <type_traits>

#include "common/operators/parts.h"
#include "common/operators/q4_parts.h"

namespace ladder {
namespace q4_gemm {

class Answer : public Oracle {
 public:
  // All elements at once, on all cores: every stage of a ladder is compared with the same ones.
  Answer(const q4::Rows& weights, const block_q8_1* x, int64_t m, int64_t n, int64_t k)
      : blocks_(k / kBlock), elements_(static_cast<size_t>(m * n)) {
    q4::Rows columns(n, k);
    columns.fill([=](int64_t i, int8_t* numbers) {
      std::memcpy(numbers, x[i].qs, kBlock);
      return x[i].d;
    });
    parallel_for(m * n, std::max<int64_t>(1, (1 << 20) / k), [&](int, int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) elements_[i] = q4::product(weights[i % m], columns[i / m], blocks_);
    });
  }

  // A kernel multiplies the sum of a block, or of a part of it, with two scales (at most two roundings), and adds up in
  // any order. The longest chain of additions is that of one thread over all blocks; kernels that share a row among
  // threads have shorter ones, and at most 8 more additions to join them. With n roundings the error is at most
  // n u / (1 - n u) times the sum of the magnitudes (Higham 2002, Accuracy and Stability, section 3.1).
  double tolerance() const override {
    const double all = static_cast<double>(blocks_ + 10) * 0x1p-24;
    return all / (1.0 - all);
  }

  void answer(const Variant&, int, int64_t first, int64_t count, const Answers& to) const override {
    for (int64_t i = 0; i < count; ++i) {
      const q4::Element& element = elements_[first + i];
      to.expected[i] = element.sum;
      to.low[i] = element.sum - tolerance() * element.magnitudes;
      to.high[i] = element.sum + tolerance() * element.magnitudes;
    }
  }

 private:
  int64_t blocks_;
  std::vector<q4::Element> elements_;
};

template <class W>
class Description : public Operator {
 public:
  static constexpr bool is_aligned = !std::is_same_v<W, const block_q4_0*>;

  const char* title() const override { return "q4_0 x q8_1 matrix multiply"; }
  std::vector<Parameter> parameters() const override {
    return {{"m", 1, 4096, "Rows of the weights, and of the result"},
            {"n", 1, 4, "Columns of activations, and of the result"},
            {"k", kBlock, 14336, "Weights of a row, a multiple of 32", {}, kBlock}};
  }

  std::vector<Tensor> tensors(const Shape& shape) const override {
    const int64_t m = shape[0], n = shape[1], blocks = shape[2] / kBlock;
    using Op = Q4Gemm<W>;
    const int64_t scratch = std::is_same_v<W, Fragments> ? Op::kScratchOfX * ((n + 63) / 64 * 64) * ((blocks + 1) / 2)
                                                         : Op::kSplits * std::min(n, Op::kSplitColumns) * m;
    return {{"y", Type::float32, Role::output, n, m},
            q4::weights_tensor(form(shape)),
            {"x", Type::uint32, Role::input, n, 9 * blocks},
            vector_tensor("scratch", Type::float32, Role::scratch, scratch)};
  }

  // A multiplication and an addition for each weight and column.
  double operations(const Shape& shape) const override {
    return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) * static_cast<double>(shape[2]);
  }
  bool shows_operations() const override { return true; }

  // One block; rows of one, two or three blocks, and of tiles with a rest; rows and columns around those of a tile.
  std::vector<Shape> edge_cases(bool cpu_device) const override {
    std::vector<Shape> shapes;
    for (const int64_t k : {32, 64, 96, 128, 160, 256, 288, 512, 1024, 1056}) shapes.push_back({{5, 3, k}});
    for (const int64_t m : {1, 3, 4, 31, 33, 63, 64, 65, 129}) shapes.push_back({{m, 1, 160}});
    for (const int64_t n : {1, 2, 4, 5, 7, 8, 9, 16, 17}) shapes.push_back({{6, n, 288}});
    for (const int64_t n : {31, 33, 65}) shapes.push_back({{37, n, 96}});
    shapes.push_back({{cpu_device ? 131 : 989, 6, 1312}});
    shapes.push_back({{1, 1, 14336}});
    return shapes;
  }

  // All pointers as little aligned as they may be; so are y and the weights alone.
  std::vector<Variant> variants(const Shape& shape) const override {
    std::vector<Variant> result(2, plain());
    Variant& off = result[1];
    off.places[kY].offset = off.places[kX].offset = 1;
    off.places[kWeights].offset = is_aligned ? 4 : 1;
    if (shape[2] == 288 && shape[1] == 5) {
      result.push_back(plain());
      result.back().places[kWeights].offset = is_aligned ? 4 : 3;
    }
    return result;
  }

  // Of x whole numbers from -127 to 127.
  void fill(const Shape& shape, int tensor, uint64_t seed, void* to) const override {
    const uint64_t key = mix64(mix64(seed) + static_cast<uint64_t>(tensor));
    if (tensor == kWeights) return q4::draw_weights(form(shape), key, to);
    fill_each<block_q8_1>(to, shape[1] * (shape[2] / kBlock), [=](int64_t i) { return activation(key, i); });
  }

  std::unique_ptr<Oracle> oracle(const Shape& shape, const std::vector<const void*>& inputs) const override {
    return std::make_unique<Answer>(q4::rows_of(form(shape), inputs[kWeights]),
                                    static_cast<const block_q8_1*>(inputs[kX]), shape[0], shape[1], shape[2]);
  }

 private:
  static q4::Form<W> form(const Shape& shape) { return {shape[0], shape[2] / kBlock}; }

  static block_q8_1 activation(uint64_t key, int64_t i) {
    block_q8_1 block;
    int sum = 0;
    for (int j = 0; j < kBlock; ++j) {
      block.qs[j] = static_cast<int8_t>(static_cast<int>(hash32(key ^ 0x5bd1e995u, kBlock * i + j) % 255) - 127);
      sum += block.qs[j];
    }
    const float d = q4::drawn_scale(hash32(key, i));
    block.d = Float16::from(d);
    block.s = Float16::from(static_cast<float>(sum) * d);
    return block;
  }
};

}  // namespace q4_gemm

template <class W>
const Operator& Q4Gemm<W>::get() {
  static const q4_gemm::Description<W> description;
  return description;
}

template struct Q4Gemm<const block_q4_0*>;
template struct Q4Gemm<Repacked>;
template struct Q4Gemm<Fragments>;

}  // namespace ladder
