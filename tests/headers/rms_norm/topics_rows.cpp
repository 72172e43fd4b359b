// Shapes, modes of computation, places in memory, values.
#include <algorithm>
#include <limits>

#include "tests/headers/rms_norm/topics.h"

namespace header_test {
namespace {

void set(Case& c, int tensor, int64_t index, float value) {
  set_element(c.tensors[tensor].type, c.inputs[tensor].data(), index, value);
}

}  // namespace

void lengths(Tally& tally, const Combination& c, bool quick) {
  std::vector<int64_t> all = {1,     7,     31,    32,    33,    111,    1000,       1023,   1024,
                              1025,  4095,  4096,  4098,  5120,  7168,   8191,       8192,   8193,
                              16384, 16385, 32768, 65536, 65537, 131072, 262144 + 8, 1048576};
  if (!c.uniform()) all = {1, 7, 33, 1000, 1025, 4096, 4098, 8192, 16384, 32768, 65537, 131072};
  int number = 0;
  for (const int64_t cols : all)
    for (const int64_t rows : {1, 3, 17}) {
      if (rows * cols > (quick ? 200000 : 4000000)) continue;
      check(tally, c, in_mode({rows, cols}, number++));
      if (!quick) check(tally, c, in_mode({rows, cols}, number++));
    }
  if (quick && c.uniform()) check(tally, c, in_mode({1, 1048576}, 0));
}

// Around the numbers of packs at which another kernel takes over, for packs of 1 to 8 elements.
void pack_counts(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t elements : {1, 2, 4, 8})
    for (int64_t packs = 4; packs <= 16384; packs *= 2)
      for (const int64_t cols :
           {elements * (packs - 1), elements * packs, elements * (packs + 1), elements * packs * 3 / 2})
        for (const int64_t rows : {1, 3, 20}) {
          if (rows * cols > (quick ? 20000 : 300000)) continue;
          check(tally, c, in_mode({rows, cols}, number++));
        }
}

void row_counts(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t rows : {0, 1, 2, 3, 4, 5, 8, 9, 17, 989})
    for (const int64_t cols : {1, 33, 111, 128, 1000, 1024, 4096})
      if (rows * cols <= (quick ? 120000 : 5000000)) check(tally, c, in_mode({rows, cols}, number++));
  // More rows than unaligned kernels take at once: on the CPU device, and on a GPU.
  check(tally, c, {119, 1001});
  for (const auto& [rows, cols] : Shapes{{70001, 40}, {40001, 111}, {3001, 1001}, {1501, 4095}, {301, 16383}})
    if (!quick) check(tally, c, {rows, cols});
  // Problems of more than 64 MB, in which long unaligned rows have other shapes.
  for (const auto& [rows, cols] : Shapes{{1030, 16401}, {520, 33001}})
    if (!quick && c.uniform()) check(tally, c, {rows, cols});
}

void modes(Tally& tally, const Combination& c, bool quick) {
  for (const int64_t cols : {1, 33, 1000, 1024, 4098, 8192, 70000}) {
    if (quick && cols > 5000) continue;
    for (const bool weight : {false, true})
      for (const double offset : {0.0, 1.0, -0.25})
        for (const bool llama : {false, true})
          for (const double eps : {0.0, 1e-6, 1e-5, 0.5}) {
            if (quick && (eps == 1e-5 || (eps > 0.0 && offset < 0.0))) continue;
            Problem p = {3, cols};
            p.place(Op::kWeight).absent = !weight;
            p.variant.scalars = {eps, offset, llama ? 1.0 : 0.0};
            check(tally, c, p);
          }
  }
}

void alignment(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t cols : {1, 7, 32, 1000, 1024, 4096, 8192, 16384, 65536, 131072}) {
    if (quick && cols > 20000 && !c.uniform()) continue;
    if (quick && cols > 100000) continue;
    for (const int offset : {1, 2, 4}) {
      if (offset != 1 && (cols < 1000 || quick)) continue;
      for (const int tensor : matrices(c)) {
        Problem p = in_mode({3, cols}, number++);
        p.place(tensor).offset = offset;
        check(tally, c, p);
      }
      Problem p = in_mode({2, cols}, 1);
      p.place(Op::kWeight).offset = offset;
      check(tally, c, p);
      for (const int tensor : matrices(c)) p.place(tensor).offset = offset;
      check(tally, c, p);
    }
  }
}

void strides(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t cols : {1, 7, 32, 1000, 1024, 4096, 8200, 40000}) {
    if (quick && cols > (c.uniform() ? 10000 : 4096)) continue;
    const std::vector<int64_t> all = {cols + 1, cols + 8,    cols + 3,        3 * cols + 64,
                                      -cols,    -(cols + 1), -(2 * cols + 16)};
    for (const int64_t stride : all) {
      Problem p = in_mode({5, cols}, number++);
      for (const int tensor : matrices(c)) p.layout(tensor) = {stride};
      check(tally, c, p);
      for (const int tensor : matrices(c)) {
        if (quick && stride > cols + 1) continue;
        Problem one = in_mode({3, cols}, number++);
        one.layout(tensor) = {stride};
        check(tally, c, one);
      }
    }
    // One row of x for all rows; residual_out and y then have rows of their own.
    Problem p = in_mode({4, cols}, number++);
    p.layout(Op::kX) = {0};
    check(tally, c, p);
  }
  // A single row has no next one, so its stride is nobody's business.
  for (const int64_t stride : {int64_t{0}, int64_t{1}, std::numeric_limits<int64_t>::max() / 2}) {
    Problem p = {1, 1024};
    for (const int tensor : matrices(c)) p.layout(tensor) = {stride};
    check(tally, c, p);
  }
}

void heads(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t cols : {64, 80, 127, 128, 256, 4100}) {
    if (quick && cols > 300) continue;
    for (const int64_t tokens : {1, 3, 33}) {
      if (tokens * cols > 70000) continue;
      const int64_t heads = 6, packed = (heads + 2 + 2) * cols;  // q, k and v of one token
      const Layout contiguous{heads * cols, heads, cols}, query{packed, heads, cols};
      const Layout transposed{cols, heads, tokens * cols + 8};  // [heads, tokens, cols], with a gap after each head
      const Layout backwards{-packed, heads, -cols}, odd{packed + 1, heads, cols + 1};
      const Layout all[] = {query, transposed, backwards, odd};
      for (const Layout& layout : all) {
        Problem p = in_mode({tokens * heads, cols}, number++);
        for (const int tensor : matrices(c)) p.layout(tensor) = contiguous;
        p.layout(Op::kX) = layout;
        check(tally, c, p);
        for (const int tensor : matrices(c)) p.layout(tensor) = layout;
        check(tally, c, p);
        p.layout(Op::kY) = contiguous;
        check(tally, c, p);
        if (c.types.x == c.types.y) {
          p.place(Op::kY).same_as = Op::kX;
          check(tally, c, p);
        }
      }
    }
  }
}

void in_place(Tally& tally, const Combination& c, bool quick) {
  constexpr int kApart = -1;
  int number = 0;
  for (const int64_t cols : {1, 33, 1000, 1024, 4096, 8193, 16384, 40000, 131072, 300000}) {
    if (quick && cols > 100000 && cols != 131072) continue;
    for (const int64_t rows : {1, 3})
      for (const int out : {kApart, +Op::kX, +Op::kResidual})
        for (const int y : {kApart, +Op::kX, +Op::kResidual}) {
          if (!c.adds() && (out != kApart || y == Op::kResidual)) continue;
          if ((out == Op::kX && c.types.x != c.residual()) || (y == Op::kX && c.types.x != c.types.y)) continue;
          if ((y == Op::kResidual && c.residual() != c.types.y) || (out != kApart && out == y)) continue;
          for (const int64_t gap : {0, 1, 8}) {
            if (gap > 0 && (quick || cols > 50000)) continue;
            Problem p = in_mode({rows, cols}, number++);
            for (const int tensor : matrices(c)) p.layout(tensor) = {cols + gap};
            p.place(Op::kResidualOut).same_as = out;
            p.place(Op::kY).same_as = y;
            check(tally, c, p);
          }
        }
  }
}

void values(Tally& tally, const Combination& c, bool quick) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  int number = 0;
  for (const int64_t cols : {1, 33, 1024, 4097, 16384, 40000}) {
    if (quick && cols > 20000) continue;
    // Squares that half cannot hold, tiny values, subnormal ones, all zeros; eps from nothing to much.
    for (const float magnitude : {30000.0f, 6e-5f, 6e-8f, 1e-4f, 0.0f, 1e15f, 1e-20f, 1e-39f})
      for (const double eps : {1e-6, 1e-12, 0.5}) {
        if (magnitude == 1e15f && (c.types.x == Type::float16 || c.residual() == Type::float16)) continue;
        Problem p = in_mode({2, cols}, number++);
        p.variant.scalars[Op::kEps] = eps;
        const auto change = [&](Case& to) {
          for (int64_t i = 0; i < 2 * cols; ++i) {
            const int64_t col = i % cols;
            set(to, Op::kX, i, magnitude * (col % 3 == 1 ? -1.0f : 0.5f));
            if (c.adds()) set(to, Op::kResidual, i, magnitude * (col % 5 == 2 ? -0.5f : 0.25f));
          }
        };
        tally.expect(Trial(c, p, change).run());
      }
    // What is no number stays in its row.
    for (const float bad : {nan, infinity, -infinity})
      for (const int64_t col : {int64_t{0}, cols / 2, cols - 1}) {
        const auto change = [&](Case& to) {
          set(to, Op::kX, 4 * cols + col, bad);
          if (c.adds()) set(to, Op::kResidual, 6 * cols + cols - 1 - col, bad);
        };
        tally.expect(Trial(c, in_mode({9, cols}, number++), change).run());
      }
    // A NaN and an infinity in the weight stay in their columns.
    const auto change = [&](Case& to) {
      set(to, Op::kWeight, cols / 2, nan);
      set(to, Op::kWeight, cols - 1, infinity);
    };
    tally.expect(Trial(c, in_mode({3, cols}, 0), change).run());
  }
}

}  // namespace header_test
