// include/memory_overlap.cuh compared with the bytes of tensors themselves, of which many are drawn: what
// overlaps is always found, and what does not overlap is accepted where the tensors are of the usual kinds.
#include "../../include/memory_overlap.cuh"

#include <bitset>
#include <cstdio>
#include <random>

using memory_overlap::Region;

namespace {

constexpr int kSpace = 4096;
using Bytes = std::bitset<kSpace>;

struct Tensor {
  int begin, size, rows, stride, heads, head_stride;

  Region region() const {
    return Region(reinterpret_cast<const void*>(uintptr_t{1} << 40 | static_cast<unsigned>(begin)), size, rows, stride,
                  heads, head_stride);
  }
  // false if it does not fit.
  bool draw(Bytes& bytes) const {
    for (int row = 0; row < rows; ++row)
      for (int head = 0; head < heads; ++head) {
        const int first = begin + row * stride + head * head_stride;
        if (first < 0 || first + size > kSpace) return false;
        for (int i = first; i < first + size; ++i) bytes.set(static_cast<size_t>(i));
      }
    return true;
  }
};

std::mt19937 random_bits(7);
int draw(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_bits); }

int failures = 0;

// `exact`: what does not overlap must be accepted, too. Returns 0 or 1, or -1 where there is nothing to compare.
int compare(const char* kind, const Tensor& a, const Tensor& b, bool exact) {
  Bytes of_a, of_b;
  if (!a.draw(of_a) || !b.draw(of_b)) return -1;
  const bool overlap = (of_a & of_b).any(), found = a.region().overlaps(b.region());
  if (found != b.region().overlaps(a.region()) || (overlap && !found) || (exact && found && !overlap)) {
    if (++failures < 10)
      for (const Tensor& t : {a, b})
        std::printf("%s: %d + %d bytes, %d x %d, %d x %d: %s\n", kind, t.begin, t.size, t.rows, t.stride, t.heads,
                    t.head_stride, found ? "refused" : "accepted");
  }
  return overlap;
}

template <class Draw>
void check(const char* kind, bool exact, Draw draw_two) {
  int compared[2] = {};
  for (int i = 0; i < 60000; ++i) {
    const auto [a, b] = draw_two();
    const int overlap = compare(kind, a, b, exact);
    if (overlap >= 0) ++compared[overlap];
  }
  std::printf("%s: %d pairs overlap, %d do not\n", kind, compared[1], compared[0]);
  if (compared[0] < 3000 || compared[1] < 3000) ++failures;
}

struct Two {
  Tensor a, b;
};

}  // namespace

int main() {
  check("any", false, [] {
    const auto any = [] {
      return Tensor{draw(0, kSpace), draw(1, 40), draw(1, 9), draw(-400, 400), draw(1, 5), draw(-120, 120)};
    };
    return Two{any(), any()};
  });
  check("rows of one matrix", true, [] {  // both have the same stride, in either direction
    const int stride = draw(20, 300), sign = draw(0, 1) ? 1 : -1;
    const auto any = [&](int direction) {
      return Tensor{draw(0, kSpace), draw(1, stride), draw(1, 12), direction * stride, 1, 0};
    };
    return Two{any(1), any(sign)};
  });
  check("a vector", true, [] {  // as a weight is
    const int stride = draw(20, 300);
    return Two{Tensor{draw(0, 1500), draw(1, stride), draw(1, 12), stride, 1, 0},
               Tensor{draw(0, 3000), draw(1, 200), 1, 0, 1, 0}};
  });
  check("a vector between heads", true, [] {
    const int size = draw(1, 30), heads = draw(2, 6), head_stride = size + draw(0, 90);
    return Two{Tensor{draw(0, 500), size, draw(1, 6), heads * head_stride, heads, head_stride},
               Tensor{draw(0, 2000), draw(1, 60), 1, 0, 1, 0}};
  });
  check("every other head", true, [] {
    const int size = draw(1, 30), heads = draw(2, 6), head_stride = 2 * size + draw(0, 9);
    const auto any = [&](int first) {
      return Tensor{first, size, draw(1, 6), heads * head_stride, heads, head_stride};
    };
    return Two{any(draw(0, 200)), any(draw(0, 2000))};
  });
  check("heads of packed rows", true, [] {  // as queries and keys are
    const int size = draw(1, 30), heads = draw(2, 8), stride = heads * size + draw(0, 9), rows = draw(1, 6);
    const auto any = [&] {
      const int first = draw(0, heads - 1);
      return Tensor{first * size, size, rows, stride, draw(1, heads - first), size};
    };
    return Two{any(), any()};
  });
  const Tensor nothing{100, 0, 4, 50, 1, 0}, row{0, 400, 1, 0, 1, 0};
  if (nothing.region().overlaps(row.region()) || Region(nullptr, 8).overlaps(Region(nullptr, 8))) ++failures;
  return failures != 0;
}
