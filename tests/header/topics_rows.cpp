// Shapes, modes of computation, places in memory, values.
#include <algorithm>
#include <limits>

#include "tests/header/topics.h"

namespace header_test {

void lengths(Tally& tally, const Combination& c, bool quick) {
  std::vector<int64_t> all = {1,     7,     31,    32,    33,    111,    1000,       1023,   1024,
                              1025,  4095,  4096,  4098,  5120,  7168,   8191,       8192,   8193,
                              16384, 16385, 32768, 65536, 65537, 131072, 262144 + 8, 1048576};
  if (!c.uniform()) all = {1, 7, 33, 1000, 1025, 4096, 4098, 8192, 16384, 32768, 65537, 131072};
  int number = 0;
  for (const int64_t cols : all)
    for (const int64_t rows : {1, 3, 17}) {
      if (rows * cols > (quick ? 200000 : 4000000)) continue;
      check(tally, c, in_mode(shaped(rows, cols), number++));
      if (!quick) check(tally, c, in_mode(shaped(rows, cols), number++));
    }
  if (quick && c.uniform()) check(tally, c, in_mode(shaped(1, 1048576), 0));
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
          check(tally, c, in_mode(shaped(rows, cols), number++));
        }
}

void row_counts(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t rows : {0, 1, 2, 3, 4, 5, 8, 9, 17, 989})
    for (const int64_t cols : {1, 33, 111, 128, 1000, 1024, 4096})
      if (rows * cols <= (quick ? 120000 : 5000000)) check(tally, c, in_mode(shaped(rows, cols), number++));
  if (!quick) check(tally, c, shaped(70001, 40));
}

void modes(Tally& tally, const Combination& c, bool quick) {
  for (const int64_t cols : {1, 33, 1000, 1024, 4098, 8192, 70000}) {
    if (quick && cols > 5000) continue;
    for (const bool weight : {false, true})
      for (const float offset : {0.0f, 1.0f, -0.25f})
        for (const bool llama : {false, true})
          for (const float eps : {0.0f, 1e-6f, 1e-5f, 0.5f}) {
            if (quick && (eps == 1e-5f || (eps > 0.0f && offset < 0.0f))) continue;
            Problem p = shaped(3, cols);
            p.weight = weight;
            p.options.weight_offset = offset;
            p.options.llama = llama;
            p.options.eps = eps;
            p.zero_rows = eps > 0.0f;
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
      for (const auto place : places(c)) {
        Problem p = in_mode(shaped(3, cols), number++);
        (p.*place).offset = offset;
        check(tally, c, p);
      }
      Problem p = in_mode(shaped(2, cols), 1);
      p.weight_offset = offset;
      check(tally, c, p);
      for (const auto place : places(c)) (p.*place).offset = offset;
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
      const Place place{{stride}};
      Problem p = in_mode(shaped(5, cols), number++);
      for (const auto tensor : places(c)) p.*tensor = place;
      check(tally, c, p);
      for (const auto tensor : places(c)) {
        if (quick && stride > cols + 1) continue;
        Problem one = in_mode(shaped(3, cols), number++);
        one.*tensor = place;
        check(tally, c, one);
      }
    }
    // One row of x for all rows; residual_out and y then have rows of their own.
    Problem p = in_mode(shaped(4, cols), number++);
    p.x.layout = {0};
    check(tally, c, p);
  }
  // A single row has no next one, so its stride is nobody's business.
  for (const int64_t stride : {int64_t{0}, int64_t{1}, std::numeric_limits<int64_t>::max() / 2}) {
    Problem p = shaped(1, 1024);
    for (const auto tensor : places(c)) (p.*tensor).layout = {stride};
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
        Problem p = in_mode(shaped(tokens * heads, cols), number++);
        for (const auto place : places(c)) (p.*place).layout = contiguous;
        p.x.layout = layout;
        check(tally, c, p);
        for (const auto place : places(c)) (p.*place).layout = layout;
        check(tally, c, p);
        p.y.layout = contiguous;
        check(tally, c, p);
        if (c.x == c.y) {
          p.y_is = Is::x;
          check(tally, c, p);
        }
      }
    }
  }
}

void in_place(Tally& tally, const Combination& c, bool quick) {
  int number = 0;
  for (const int64_t cols : {1, 33, 1000, 1024, 4096, 8193, 16384, 40000, 131072, 300000}) {
    if (quick && cols > 100000 && cols != 131072) continue;
    for (const int64_t rows : {1, 3})
      for (const Is out : {Is::apart, Is::x, Is::residual})
        for (const Is y : {Is::apart, Is::x, Is::residual}) {
          if (!c.adds() && (out != Is::apart || y == Is::residual)) continue;
          if ((out == Is::x && c.x != c.r) || (y == Is::x && c.x != c.y)) continue;
          if ((y == Is::residual && c.r != c.y) || (out != Is::apart && out == y)) continue;
          for (const int64_t gap : {0, 1, 8}) {
            if (gap > 0 && (quick || cols > 50000)) continue;
            Problem p = in_mode(shaped(rows, cols), number++);
            for (const auto place : places(c)) (p.*place).layout = {cols + gap};
            p.residual_out_is = out;
            p.y_is = y;
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
      for (const float eps : {1e-6f, 1e-12f, 0.5f}) {
        if (magnitude == 1e15f && (c.x == Type::float16 || c.r == Type::float16)) continue;
        Trial trial(c, [&] {
          Problem p = in_mode(shaped(2, cols), number++);
          p.options.eps = eps;
          return p;
        }());
        for (int64_t row = 0; row < 2; ++row)
          for (int64_t col = 0; col < cols; ++col) {
            trial.x->set(row, col, magnitude * (col % 3 == 1 ? -1.0f : 0.5f));
            if (c.adds()) trial.residual->set(row, col, magnitude * (col % 5 == 2 ? -0.5f : 0.25f));
          }
        tally.expect(trial.run());
      }
    // What is no number stays in its row.
    for (const float bad : {nan, infinity, -infinity})
      for (const int64_t col : {int64_t{0}, cols / 2, cols - 1}) {
        Trial trial(c, in_mode(shaped(9, cols), number++));
        trial.x->set(4, col, bad);
        if (c.adds()) trial.residual->set(6, cols - 1 - col, bad);
        tally.expect(trial.run());
      }
    // A NaN and an infinity in the weight stay in their columns.
    Trial trial(c, in_mode(shaped(3, cols), 0));
    trial.weight->set(0, cols / 2, nan);
    trial.weight->set(0, cols - 1, infinity);
    tally.expect(trial.run());
  }
}

}  // namespace header_test
