// float16 and bfloat16 against the exact oracle: conversions, arithmetic, comparisons and functions, on all 65,536
// values where one operand is enough, on ties and their neighbours, and on random operands.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>
#include <vector>

#include "exact.h"

namespace {

#define FORMAT(Format, type, type2, raw, raw2, name, name2, mantissa_bits, exponent_bits)        \
  struct Format {                                                                                \
    using T = type;                                                                              \
    using T2 = type2;                                                                            \
    using Raw = raw;                                                                             \
    using Raw2 = raw2;                                                                           \
    static constexpr Layout layout{mantissa_bits, exponent_bits};                                \
    static T of(uint32_t bits) { return __ushort_as_##name(static_cast<unsigned short>(bits)); } \
    static uint32_t bits(T x) { return __##name##_as_ushort(x); }                                \
    static float widen(T x) { return __##name##2float(x); }                                      \
    static T nearest(float x) { return __float2##name(x); }                                      \
    static T nearest(double x) { return __double2##name(x); }                                    \
    static T round(float x, Mode m) {                                                            \
      return m == Mode::nearest ? __float2##name##_rn(x)                                         \
             : m == Mode::zero  ? __float2##name##_rz(x)                                         \
             : m == Mode::up    ? __float2##name##_ru(x)                                         \
                                : __float2##name##_rd(x);                                           \
    }                                                                                            \
    static T round(int x, Mode m) {                                                              \
      return m == Mode::nearest ? __int2##name##_rn(x)                                           \
             : m == Mode::zero  ? __int2##name##_rz(x)                                           \
             : m == Mode::up    ? __int2##name##_ru(x)                                           \
                                : __int2##name##_rd(x);                                             \
    }                                                                                            \
    static T round(unsigned long long x, Mode m) {                                               \
      return m == Mode::nearest ? __ull2##name##_rn(x)                                           \
             : m == Mode::zero  ? __ull2##name##_rz(x)                                           \
             : m == Mode::up    ? __ull2##name##_ru(x)                                           \
                                : __ull2##name##_rd(x);                                             \
    }                                                                                            \
    static int to_int(T x, Mode m) {                                                             \
      return m == Mode::nearest ? __##name##2int_rn(x)                                           \
             : m == Mode::zero  ? __##name##2int_rz(x)                                           \
             : m == Mode::up    ? __##name##2int_ru(x)                                           \
                                : __##name##2int_rd(x);                                             \
    }                                                                                            \
    static long long to_ll(T x) { return __##name##2ll_rz(x); }                                  \
    static unsigned short to_ushort(T x) { return __##name##2ushort_rn(x); }                     \
    static T2 pair(T x, T y) { return __halves2##name2(x, y); }                                  \
    static T2 pair(float x, float y) { return __floats2##name2##_rn(x, y); }                     \
    static T2 both(T x) { return __##name##2##name2(x); }                                        \
    static float2 widen(T2 v) { return __##name2##2float2(v); }                                  \
    static T2 narrow(float2 v) { return __float22##name2##_rn(v); }                              \
    static T low(T2 v) { return __low2##name(v); }                                               \
    static T high(T2 v) { return __high2##name(v); }                                             \
    static T2 lows(T2 a, T2 b) { return __lows2##name2(a, b); }                                  \
    static T2 highs(T2 a, T2 b) { return __highs2##name2(a, b); }                                \
  };
FORMAT(Fp16, __half, __half2, __half_raw, __half2_raw, half, half2, 10, 5)
FORMAT(Bf16, __nv_bfloat16, __nv_bfloat162, __nv_bfloat16_raw, __nv_bfloat162_raw, bfloat16, bfloat162, 7, 8)
#define BOTH Fp16, Bf16

constexpr uint32_t kNan = 0x7fff;
constexpr Mode kModes[] = {Mode::nearest, Mode::zero, Mode::up, Mode::down};

template <class F>
bool is_nan(uint32_t bits) {
  return (bits & 0x7fff) > F::layout.infinity();
}
// A random finite value: any bits, or (to meet near-cancellation and ties) an exponent near one and few bits.
template <class F>
uint32_t random_finite(Bits& random) {
  while (true) {
    const uint32_t word = random.word();
    const uint32_t one = F::bits(F::nearest(1.f));
    const uint32_t bits = word >> 31 ? word & 0xffff : (word & 0x8000) | (one + (word >> 16 & 0xfff) - 0x800);
    if ((bits & 0x7fff) < F::layout.infinity()) return bits;
  }
}
// The bits of an exact result rounded to nearest; a zero's sign is not decided here.
template <class F>
bool same(uint32_t got, const Exact& exact) {
  if (exact.sign() == 0) return (got & 0x7fff) == 0;
  return got == F::layout.round(exact, Mode::nearest);
}

}  // namespace

TEST_CASE_TEMPLATE("Every value widens exactly and comes back", F, BOTH) {
  Tally widened, returned, by_bits;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = F::widen(F::of(bits));
    if (is_nan<F>(bits)) {
      widened.expect(x != x, true, bits);
      returned.expect(F::bits(F::nearest(x)), kNan, bits);
    } else {
      const auto wanted = static_cast<float>(F::layout.of_bits(bits));
      widened.expect(x, wanted, bits);
      widened.expect(std::signbit(x), std::signbit(wanted), bits);
      returned.expect(F::bits(F::nearest(x)), bits, bits);
    }
    if (!is_nan<Fp16>(bits)) {
      by_bits.expect(simt::fp16::widen_by_bits(static_cast<unsigned short>(bits)), __half2float(Fp16::of(bits)), bits);
    }
  }
  CHECK_TALLY(widened);
  CHECK_TALLY(returned);
  CHECK_TALLY(by_bits);
}

TEST_CASE_TEMPLATE("Ties go to even and their neighbours to the nearer value, in every binade", F, BOTH) {
  Tally tally;
  for (uint32_t code = 0; code < F::layout.infinity(); ++code) {
    const double below = F::layout.value(code), above = F::layout.value(code + 1);
    const double middle = (below + above) / 2;  // exact in double; bfloat16's smallest are no floats
    const uint32_t even = code + code % 2;
    for (const double sign : {1.0, -1.0}) {
      const uint32_t sign_bit = sign < 0 ? 0x8000 : 0;
      tally.expect(F::bits(F::nearest(sign * middle)), even | sign_bit, middle);
      tally.expect(F::bits(F::nearest(sign * std::nextafter(middle, 0.0))), code | sign_bit, middle);
      tally.expect(F::bits(F::nearest(sign * std::nextafter(middle, HUGE_VAL))), (code + 1) | sign_bit, middle);
      const auto tie = static_cast<float>(middle);
      if (tie != middle) continue;
      tally.expect(F::bits(F::nearest(static_cast<float>(sign * tie))), even | sign_bit, tie);
      tally.expect(F::bits(F::nearest(static_cast<float>(sign * std::nextafter(tie, 0.f)))), code | sign_bit, tie);
      tally.expect(F::bits(F::nearest(static_cast<float>(sign * std::nextafter(tie, INFINITY)))), (code + 1) | sign_bit,
                   tie);
    }
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Random floats round as the oracle says, in all four modes", F, BOTH) {
  Bits random(1);
  Tally tally;
  for (int i = 0; i < 40000; ++i) {
    float x = random.finite_float();
    if (i % 2 == 0)
      x = std::ldexp(1 + static_cast<float>(random.word()) * 0x1p-32f, static_cast<int>(random.word() % 44) - 27);
    if (x == 0) continue;
    for (const Mode mode : kModes) {
      tally.expect(F::bits(F::round(x, mode)), F::layout.round(Exact(x), mode), x, static_cast<int>(mode));
    }
    tally.expect<uint32_t>(simt::fp16::Code::round(x), Fp16::bits(__float2half(x)), x);
  }
  for (const Mode mode : kModes) {
    tally.expect(F::bits(F::round(-0.f, mode)), 0x8000u);
    tally.expect(F::bits(F::round(INFINITY, mode)), F::layout.infinity());
    tally.expect(F::bits(F::round(-INFINITY, mode)), F::layout.infinity() | 0x8000);
    tally.expect(F::bits(F::round(-NAN, mode)), kNan);
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("A double is rounded once, not by way of a float", F, BOTH) {
  // Just above a tie by less than a float can tell.
  const double tie = (F::layout.value(0x3c00) + F::layout.value(0x3c01)) / 2;
  CHECK(F::bits(F::nearest(tie)) == 0x3c00);
  CHECK(F::bits(F::nearest(tie * (1 + 0x1p-40))) == 0x3c01);
  CHECK(F::bits(F::nearest(-tie * (1 + 0x1p-40))) == 0xbc01);
  CHECK(F::bits(F::nearest(1e300)) == F::layout.infinity());
  CHECK(F::bits(F::nearest(-1e-300)) == 0x8000);
}

TEST_CASE_TEMPLATE("Sums, differences, products, quotients and roots are rounded once", F, BOTH) {
  Bits random(2);
  Tally tally;
  for (int i = 0; i < 60000; ++i) {
    const uint32_t a = random_finite<F>(random), b = random_finite<F>(random);
    const double x = F::layout.of_bits(a), y = F::layout.of_bits(b);
    tally.expect(same<F>(F::bits(__hadd(F::of(a), F::of(b))), Exact(x) + Exact(y)), true, x, y, 1);
    tally.expect(same<F>(F::bits(__hsub(F::of(a), F::of(b))), Exact(x) - Exact(y)), true, x, y, 2);
    tally.expect(same<F>(F::bits(__hmul(F::of(a), F::of(b))), product(x, y)), true, x, y, 3);
  }
  // A quotient q is right if x lies between (q - half a unit) y and (q + half a unit) y; a root likewise.
  const auto between = [](double below, double above, auto position) {
    return position(below) >= 0 && position(above) <= 0;
  };
  for (int i = 0; i < 40000; ++i) {
    const uint32_t a = random_finite<F>(random) & 0x7fff, b = random_finite<F>(random) & 0x7fff;
    const double x = F::layout.of_bits(a), y = F::layout.of_bits(b);
    if (x == 0 || y == 0) continue;
    const auto ends = [](uint32_t code) {
      const double here = F::layout.value(code), down = code == 0 ? 0 : F::layout.value(code - 1);
      return std::pair<double, double>((down + here) / 2, (here + F::layout.value(code + 1)) / 2);
    };
    const uint32_t quotient = F::bits(__hdiv(F::of(a), F::of(b))), root = F::bits(hsqrt(F::of(a)));
    if (quotient == F::layout.infinity()) {
      tally.expect((Exact(x) - product(ends(quotient).first, y)).sign() >= 0, true, x, y, 4);
    } else {
      const auto [below, above] = ends(quotient);
      tally.expect(between(below, above, [&](double q) { return (Exact(x) - product(q, y)).sign(); }), true, x, y, 4);
      const bool tie = (Exact(x) - product(below, y)).sign() == 0 || (Exact(x) - product(above, y)).sign() == 0;
      tally.expect(tie && quotient % 2 == 1, false, x, y, 5);
    }
    const auto [below, above] = ends(root);
    tally.expect(between(below, above, [&](double r) { return (Exact(x) - product(r, r)).sign(); }), true, x, 6);
  }
  CHECK_TALLY(tally);
}

TEST_CASE("Products and quotients that underflow in bfloat16 and in float are rounded once") {
  // All mantissas; exponents such that results lie about the smallest subnormals. A double holds every product, and
  // every quotient closely enough.
  Tally tally;
  for (uint32_t a = 0; a < 0x80; ++a) {
    for (uint32_t b = 0; b < 0x80; ++b) {
      for (uint32_t shift = 0; shift < 20; ++shift) {
        const auto x = Bf16::of(0x2000 | a), y = Bf16::of((0x1a00 + (shift << 7)) | b),
                   z = Bf16::of((0x6500 - (shift << 7)) | b);
        const double p = double{Bf16::widen(x)} * Bf16::widen(y), q = double{Bf16::widen(x)} / Bf16::widen(z);
        tally.expect(Bf16::bits(__hmul(x, y)), Bf16::bits(Bf16::nearest(p)), p);
        tally.expect(Bf16::bits(__hdiv(x, z)), Bf16::bits(Bf16::nearest(q)), q);
      }
    }
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("A fused multiply-add is rounded once", F, BOTH) {
  Bits random(3);
  Tally tally;
  const auto check = [&](uint32_t a, uint32_t b, uint32_t c) {
    const double x = F::layout.of_bits(a), y = F::layout.of_bits(b), z = F::layout.of_bits(c);
    tally.expect(same<F>(F::bits(__hfma(F::of(a), F::of(b), F::of(c))), product(x, y) + Exact(z)), true, x, y, z);
  };
  for (int i = 0; i < 80000; ++i) check(random_finite<F>(random), random_finite<F>(random), random_finite<F>(random));
  // The trap: a product that is a tie, and an addend far too small for a float, or a double, to keep beside it.
  long ties = 0;
  for (int i = 0; i < 200000; ++i) {
    const uint32_t a = random_finite<F>(random), b = random_finite<F>(random);
    const double p = F::layout.of_bits(a) * F::layout.of_bits(b);
    const uint32_t code = F::bits(F::nearest(std::fabs(p)));
    if (code == 0 || code >= F::layout.infinity()) continue;
    const double half_unit = (F::layout.value(code + 1) - F::layout.value(code)) / 2;
    if (std::fabs(std::fabs(p) - F::layout.value(code)) != half_unit) continue;
    ++ties;
    for (const uint32_t tiny : {0x0001u, 0x8001u, 0x0100u, 0x8100u, 0x0000u}) check(a, b, tiny);
  }
  CHECK(ties > 100);
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Infinities and NaNs go through arithmetic as IEEE 754 says", F, BOTH) {
  const auto inf = F::of(F::layout.infinity()), one = F::nearest(1.f), zero = F::nearest(0.f), nan = F::of(kNan);
  const auto largest = F::of(F::layout.infinity() - 1);
  CHECK(F::bits(__hadd(largest, largest)) == F::layout.infinity());
  CHECK(F::bits(__hmul(largest, __hneg(largest))) == (F::layout.infinity() | 0x8000));
  CHECK(F::bits(__hsub(inf, inf)) == kNan);
  CHECK(F::bits(__hmul(inf, zero)) == kNan);
  CHECK(F::bits(__hdiv(zero, zero)) == kNan);
  CHECK(F::bits(__hdiv(one, __hneg(zero))) == (F::layout.infinity() | 0x8000));
  CHECK(F::bits(__hfma(inf, one, __hneg(inf))) == kNan);
  CHECK(F::bits(__hfma(inf, one, one)) == F::layout.infinity());
  CHECK(F::bits(__hfma(largest, largest, __hneg(inf))) == (F::layout.infinity() | 0x8000));
  CHECK(F::bits(hsqrt(__hneg(one))) == kNan);
  CHECK(__hisnan(__hneg(nan)));
  CHECK(F::bits(__habs(__hneg(inf))) == F::layout.infinity());
  CHECK(__hisinf(inf) == 1);
  CHECK(__hisinf(__hneg(inf)) == -1);
  CHECK(__hisinf(nan) == 0);
  CHECK(__hisnan(nan));
  CHECK_FALSE(__hisnan(inf));
}

TEST_CASE_TEMPLATE("Saturation, relu, minimum and maximum", F, BOTH) {
  const auto of = [](float x) { return F::nearest(x); };
  const auto nan = F::of(kNan), negative_nan = F::of(0xffff);
  CHECK(F::widen(__hadd_sat(of(0.75f), of(0.75f))) == 1);
  CHECK(F::widen(__hsub_sat(of(0.25f), of(0.75f))) == 0);
  CHECK(F::widen(__hmul_sat(of(0.5f), of(0.5f))) == 0.25f);
  CHECK(F::widen(__hfma_sat(of(2), of(2), of(-3.5f))) == 0.5f);
  CHECK(F::bits(__hadd_sat(nan, of(1))) == 0);
  CHECK(F::bits(__hfma_relu(of(2), of(-3), of(1))) == 0);
  CHECK(F::widen(__hfma_relu(of(2), of(3), of(1))) == 7);
  CHECK(F::bits(__hfma_relu(negative_nan, of(3), of(1))) == kNan);
  CHECK(F::widen(__hmax(of(-2), of(1))) == 1);
  CHECK(F::widen(__hmin(of(-2), of(1))) == -2);
  CHECK(F::widen(__hmax(negative_nan, of(1))) == 1);
  CHECK(F::widen(__hmin(of(1), nan)) == 1);
  CHECK(F::bits(__hmax(negative_nan, negative_nan)) == kNan);
  CHECK(F::bits(__hmax(of(-0.f), of(0.f))) == 0);
  CHECK(F::bits(__hmax(of(0.f), of(-0.f))) == 0);
  CHECK(F::bits(__hmin(of(0.f), of(-0.f))) == 0x8000);
  CHECK(F::bits(__hmin(of(-0.f), of(0.f))) == 0x8000);
  CHECK(F::bits(__hmax_nan(negative_nan, of(1))) == kNan);
  CHECK(F::bits(__hmin_nan(of(1), nan)) == kNan);
  CHECK(F::widen(__hmax_nan(of(3), of(1))) == 3);
}

TEST_CASE_TEMPLATE("Comparisons, ordered and unordered, of scalars and pairs", F, BOTH) {
  Bits random(4);
  Tally tally;
  std::vector<uint32_t> values = {0, 0x8000, F::layout.infinity(), F::layout.infinity() | 0x8000, kNan, 0xffff,
                                  1, 0x8001};
  for (int i = 0; i < 40; ++i) values.push_back(random.word() & 0xffff);
  for (const uint32_t a : values) {
    for (const uint32_t b : values) {
      const double x = F::layout.of_bits(a), y = F::layout.of_bits(b);
      const bool unordered = x != x || y != y;
      const auto p = F::of(a), q = F::of(b);
      const auto ordinary = F::nearest(2.f);
      // Low halves under test, high halves that compare true with == <= >=, false with the others.
      const auto v = F::pair(p, ordinary), w = F::pair(q, ordinary);
#define COMPARE(name, operation, high)                                                                \
  {                                                                                                   \
    const bool holds = (x operation y) && !unordered, holds_u = holds || unordered;                   \
    tally.expect(__h##name(p, q), holds, a, b);                                                       \
    tally.expect(__h##name##u(p, q), holds_u, a, b);                                                  \
    tally.expect(__hb##name##2(v, w), holds&& high, a, b);                                            \
    tally.expect(__hb##name##u2(v, w), holds_u&& high, a, b);                                         \
    tally.expect(F::widen(__h##name##2(v, w)).x, holds ? 1.f : 0.f, a, b);                            \
    tally.expect(F::widen(__h##name##2(v, w)).y, high ? 1.f : 0.f, a, b);                             \
    tally.expect(F::widen(__h##name##u2(v, w)).x, holds_u ? 1.f : 0.f, a, b);                         \
    tally.expect(__h##name##2_mask(v, w), (holds ? 0xffffu : 0) | (high ? 0xffff0000u : 0), a, b);    \
    tally.expect(__h##name##u2_mask(v, w), (holds_u ? 0xffffu : 0) | (high ? 0xffff0000u : 0), a, b); \
  }
      COMPARE(eq, ==, true)
      COMPARE(ne, !=, false)
      COMPARE(lt, <, false)
      COMPARE(le, <=, true)
      COMPARE(gt, >, false)
      COMPARE(ge, >=, true)
#undef COMPARE
      tally.expect(p == q, x == y, a, b);
      tally.expect(p != q, x != y, a, b);
      tally.expect(p < q, x < y, a, b);
      tally.expect(p >= q, x >= y, a, b);
      tally.expect(v == w, x == y, a, b);
    }
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Pairs do on each half what the scalar function does", F, BOTH) {
  Bits random(5);
  Tally tally;
  for (int i = 0; i < 5000; ++i) {
    typename F::T h[6];
    for (auto& x : h) x = F::of(random.word() & 0xffff);
    const auto a = F::pair(h[0], h[1]), b = F::pair(h[2], h[3]), c = F::pair(h[4], h[5]);
    const auto expect = [&](typename F::T2 got, typename F::T low, typename F::T high) {
      tally.expect(F::bits(F::low(got)), F::bits(low), F::bits(h[0]), F::bits(h[2]), F::bits(h[4]));
      tally.expect(F::bits(F::high(got)), F::bits(high), F::bits(h[1]), F::bits(h[3]), F::bits(h[5]));
    };
    expect(__hadd2(a, b), __hadd(h[0], h[2]), __hadd(h[1], h[3]));
    expect(__hsub2(a, b), __hsub(h[0], h[2]), __hsub(h[1], h[3]));
    expect(__hmul2(a, b), __hmul(h[0], h[2]), __hmul(h[1], h[3]));
    expect(__h2div(a, b), __hdiv(h[0], h[2]), __hdiv(h[1], h[3]));
    expect(__hadd2_rn(a, b), __hadd_rn(h[0], h[2]), __hadd(h[1], h[3]));
    expect(__hmul2_sat(a, b), __hmul_sat(h[0], h[2]), __hmul_sat(h[1], h[3]));
    expect(__hfma2(a, b, c), __hfma(h[0], h[2], h[4]), __hfma(h[1], h[3], h[5]));
    expect(__hfma2_relu(a, b, c), __hfma_relu(h[0], h[2], h[4]), __hfma_relu(h[1], h[3], h[5]));
    expect(__hmax2(a, b), __hmax(h[0], h[2]), __hmax(h[1], h[3]));
    expect(__hmin2_nan(a, b), __hmin_nan(h[0], h[2]), __hmin_nan(h[1], h[3]));
    expect(__hneg2(a), __hneg(h[0]), __hneg(h[1]));
    expect(__habs2(a), __habs(h[0]), __habs(h[1]));
    expect(h2sqrt(a), hsqrt(h[0]), hsqrt(h[1]));
    expect(h2exp(a), hexp(h[0]), hexp(h[1]));
    expect(a + b, h[0] + h[2], h[1] + h[3]);
    expect(a / b, h[0] / h[2], h[1] / h[3]);
    expect(-a, -h[0], -h[1]);
    expect(__lowhigh2highlow(a), h[1], h[0]);
    expect(F::lows(a, b), h[0], h[2]);
    expect(F::highs(a, b), h[1], h[3]);
    expect(F::both(h[0]), h[0], h[0]);
    // (a.x + i a.y) (b.x + i b.y) + (c.x + i c.y), in the order of the GPU's four operations
    expect(__hcmadd(a, b, c), __hfma(__hneg(h[1]), h[3], __hfma(h[0], h[2], h[4])),
           __hfma(h[1], h[2], __hfma(h[0], h[3], h[5])));
  }
  const float2 v = F::widen(F::narrow(float2{1.5f, -2.f}));
  CHECK(v.x == 1.5f);
  CHECK(v.y == -2.f);
  CHECK(__low2float(F::pair(1.f, 2.f)) == 1);
  CHECK(__high2float(F::pair(1.f, 2.f)) == 2);
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Integers convert in all four modes, saturate, and take NaN as the GPU does", F, BOTH) {
  Bits random(6);
  Tally tally;
  for (int i = 0; i < 30000; ++i) {
    const int x = static_cast<int>(random.word()) >> random.word() % 31;
    const unsigned long long big = random.next() >> random.word() % 64;
    for (const Mode mode : kModes) {
      if (x != 0)
        tally.expect(F::bits(F::round(x, mode)), F::layout.round(Exact(x, 0), mode), x, static_cast<int>(mode));
      if (big != 0) tally.expect(F::bits(F::round(big, mode)), F::layout.round(Exact(Wide{big}, 0), mode), big);
    }
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double x = F::layout.of_bits(bits);
    const auto h = F::of(bits);
    const auto clamp = [&](double rounded) {
      return x != x ? 0 : static_cast<int>(std::fmin(std::fmax(rounded, -2147483648.0), 2147483647.0));
    };
    tally.expect(F::to_int(h, Mode::nearest), clamp(std::nearbyint(x)), x);
    tally.expect(F::to_int(h, Mode::zero), clamp(std::trunc(x)), x);
    tally.expect(F::to_int(h, Mode::up), clamp(std::ceil(x)), x);
    tally.expect(F::to_int(h, Mode::down), clamp(std::floor(x)), x);
    const double limited = std::fmin(std::fmax(std::nearbyint(x), 0.0), 65535.0);
    tally.expect<unsigned>(F::to_ushort(h), x != x ? 0 : static_cast<unsigned>(limited), x);
    if (x == x && std::fabs(x) < 9e18) tally.expect(F::to_ll(h), static_cast<long long>(x), x);
  }
  CHECK(F::to_ll(F::of(kNan)) == std::numeric_limits<long long>::min());
  CHECK(F::to_ll(F::of(F::layout.infinity())) == std::numeric_limits<long long>::max());
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Functions are within one unit in the last place of the exact value", F, BOTH) {
  struct Function {
    typename F::T (*narrow)(typename F::T);
    double (*exact)(double);
  };
  const Function functions[] = {
      {hexp, [](double x) { return std::exp(x); }},
      {hexp2, [](double x) { return std::exp2(x); }},
      {hexp10, [](double x) { return std::pow(10, x); }},
      {hlog, [](double x) { return std::log(x); }},
      {hlog2, [](double x) { return std::log2(x); }},
      {hlog10, [](double x) { return std::log10(x); }},
      {hsin, [](double x) { return std::sin(x); }},
      {hcos, [](double x) { return std::cos(x); }},
      {htanh, [](double x) { return std::tanh(x); }},
      {htanh_approx, [](double x) { return std::tanh(x); }},
      {hrcp, [](double x) { return 1 / x; }},
      {hrsqrt, [](double x) { return 1 / std::sqrt(x); }},
  };
  Tally tally;
  for (size_t f = 0; f < std::size(functions); ++f) {
    for (uint32_t bits = 0; bits < 0x10000; bits += 3) {
      const double wanted = functions[f].exact(F::layout.of_bits(bits));
      const uint32_t got = F::bits(functions[f].narrow(F::of(bits))), nearest = F::bits(F::nearest(wanted));
      if (wanted != wanted) {
        tally.expect(got, kNan, f, bits);
      } else {
        tally.expect((got ^ nearest) < 0x8000 && (got > nearest ? got - nearest : nearest - got) <= 1, true, f, bits);
      }
    }
  }
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float x = F::widen(F::of(bits));
    if (x != x) continue;
    tally.expect(F::widen(hceil(F::of(bits))), std::ceil(x), x);
    tally.expect(F::widen(hfloor(F::of(bits))), std::floor(x), x);
    tally.expect(F::widen(htrunc(F::of(bits))), std::trunc(x), x);
    tally.expect(F::widen(hrint(F::of(bits))), std::nearbyint(x), x);
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("The types behave in expressions as CUDA's do", F, BOTH) {
  using T = typename F::T;
  using T2 = typename F::T2;
  static_assert(sizeof(T) == 2 && alignof(T) == 2 && sizeof(T2) == 4 && alignof(T2) == 4, "");
  static_assert(std::is_trivially_copyable<T>::value && std::is_trivially_default_constructible<T>::value, "");
  static_assert(std::is_trivially_copyable<T2>::value && std::is_trivially_default_constructible<T2>::value, "");
  constexpr T kOne = typename F::Raw{0x3c00};
  constexpr T2 kPair(kOne, kOne);
  CHECK(F::bits(F::high(kPair)) == 0x3c00);

  T h = 3;  // from an int, a double, an unsigned short
  h = 2.5;
  h += static_cast<unsigned short>(2);
  CHECK(static_cast<float>(h) == 4.5f);
  CHECK(h++ == T(4.5f));
  CHECK(--h == T(4.5f));
  float f = h;
  double d = h;
  int i = h;
  CHECK(f == 4.5f);
  CHECK(d == 4.5);
  CHECK(i == 4);
  CHECK(static_cast<long>(T(-7.75f)) == -7);
  CHECK(static_cast<signed char>(T(1000.f)) == 127);
  CHECK(static_cast<unsigned char>(T(-1.f)) == 0);
  CHECK((h ? true : false));
  CHECK_FALSE(static_cast<bool>(T(-0.f)));
  h *= h - T(2);
  CHECK(float(h) == 11.25f);
  CHECK(float(-h) == -11.25f);
  CHECK(float(h / T(2.25f)) == 5.f);

  volatile T shared[1];
  volatile T& stored = (shared[0] = T(1.5f));
  CHECK(float(T(static_cast<typename F::Raw>(stored))) == 1.5f);

  T2 pair = F::pair(T(1.f), T(2.f));
  pair += pair;
  pair *= F::both(T(0.5f));
  ++pair;
  CHECK(float(pair.x) == 2);
  CHECK(float(pair.y) == 3);
  const auto raw = static_cast<typename F::Raw2>(pair);
  pair = typename F::Raw2{raw.y, raw.x};
  CHECK(float(pair.x) == 3);
}

TEST_CASE("float16 and bfloat16 convert into each other through float") {
  CHECK(float(__half(__nv_bfloat16(1.5f))) == 1.5f);
  CHECK(float(__nv_bfloat16(__half(0.333251953125f))) == 0.333984375f);
  CHECK(std::isinf(float(__half(__nv_bfloat16(1e6f)))));
}

TEST_CASE("The constants") {
  CHECK(float(CUDART_ONE_FP16) == 1);
  CHECK(float(CUDART_MAX_NORMAL_FP16) == 65504);
  CHECK(float(CUDART_MIN_DENORM_FP16) == 0x1p-24f);
  CHECK(std::isinf(float(CUDART_INF_FP16)));
  CHECK(__hisnan(CUDART_NAN_FP16));
  CHECK(std::signbit(float(CUDART_NEG_ZERO_FP16)));
  CHECK(float(CUDART_ONE_BF16) == 1);
  CHECK(float(CUDART_MAX_NORMAL_BF16) == 0x1.fep127f);
  CHECK(float(CUDART_MIN_DENORM_BF16) == 0x1p-133f);
  CHECK(std::isinf(float(CUDART_INF_BF16)));
}
