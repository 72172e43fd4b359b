// Vector types, device math, conversions and integer intrinsics, each against an oracle that shares no code with it.
#include <simt/math.h>
#include <vector_functions.h>
#include <vector_types.h>

#include <algorithm>
#include <cfenv>
#include <functional>
#include <type_traits>
#include <vector>

#include "exact.h"

using namespace std;  // as many programs do: the global min, max, abs and isnan must stay unambiguous

namespace {

// A value the compiler cannot see through.
template <class T>
T hidden(T x) {
  volatile T v = x;
  return v;
}

float next_up(float x) { return nextafter(x, INFINITY); }
double next_up(double x) { return nextafter(x, HUGE_VAL); }
float random_real(Bits& random, float) {
  const int exponent = static_cast<int>(random.word() % 60) - 30;
  const float x = ldexp(static_cast<float>(random.word() >> 8 | 1), exponent - 24);
  return random.word() % 2 ? x : -x;
}
double random_real(Bits& random, double) {
  const int exponent = static_cast<int>(random.word() % 60) - 30;
  const double x = ldexp(static_cast<double>(random.next() >> 11 | 1), exponent - 53);
  return random.word() % 2 ? x : -x;
}

// The four results of one operation against the sign of (exact - candidate).
template <class Real, class Side>
void check_roundings(Tally& tally, Real rn, Real rz, Real ru, Real rd, Side side, int operation) {
  tally.expect(side(rd) >= 0 && side(next_up(rd)) < 0, true, operation, rd);
  tally.expect(side(ru) <= 0 && (side(ru) == 0 || -side(-next_up(-ru)) < 0), true, operation, ru);
  tally.expect(rz, ru + rd < 0 ? ru : rd, operation, rd);
  tally.expect(rn == ru || rn == rd, true, operation, rn, rd);
}

template <class Real>
int side_of_sum(const Exact& exact, Real candidate) {
  return (exact - Exact(static_cast<double>(candidate))).sign();
}

}  // namespace

TEST_CASE("Vector types have CUDA's size and alignment and are plain aggregates") {
#define LAYOUT(name, T)                                                                                              \
  static_assert(sizeof(name##1) == sizeof(T) && alignof(name##1) == alignof(T), #name);                              \
  static_assert(sizeof(name##2) == 2 * sizeof(T) && alignof(name##2) == 2 * sizeof(T), #name);                       \
  static_assert(sizeof(name##3) == 3 * sizeof(T) && alignof(name##3) == alignof(T), #name);                          \
  static_assert(sizeof(name##4) == 4 * sizeof(T) && alignof(name##4) == std::min(4 * sizeof(T), size_t{16}), #name); \
  static_assert(is_trivial<name##4>::value && is_aggregate<name##4>::value, #name);                                  \
  CHECK(make_##name##1(5).x == 5);                                                                                   \
  CHECK(make_##name##2(1, 2).y == 2);                                                                                \
  CHECK(make_##name##3(1, 2, 3).z == 3);                                                                             \
  CHECK(make_##name##4(1, 2, 3, 4).w == 4);
  LAYOUT(char, signed char)
  LAYOUT(uchar, unsigned char)
  LAYOUT(short, short)
  LAYOUT(ushort, unsigned short)
  LAYOUT(int, int)
  LAYOUT(uint, unsigned int)
  LAYOUT(long, long)
  LAYOUT(ulong, unsigned long)
  LAYOUT(longlong, long long)
  LAYOUT(ulonglong, unsigned long long)
  LAYOUT(float, float)
  LAYOUT(double, double)
#undef LAYOUT
  static_assert(alignof(double4_16a) == 16 && alignof(double4_32a) == 32 && sizeof(longlong4_32a) == 32, "");
  CHECK(make_double4_32a(1, 2, 3, 4).z == 3);
}

TEST_CASE("dim3 fills in ones and converts from and to uint3") {
  constexpr dim3 grid(7);
  static_assert(grid.x == 7 && grid.y == 1 && grid.z == 1, "");
  const dim3 block = make_uint3(1, 2, 3);
  const uint3 back = block;
  CHECK(back.z == 3);
  const auto volume = [](dim3 d) { return d.x * d.y * d.z; };
  CHECK(volume(5) == 5);
  CHECK(volume({2, 3}) == 6);
}

TEST_CASE_TEMPLATE("Directed roundings are the neighbours of the exact result", Real, float, double) {
  constexpr bool is_float = is_same<Real, float>::value;
#define FOUR(float_name, double_name, ...)                                                                            \
  [&] {                                                                                                               \
    if constexpr (is_float) {                                                                                         \
      return array<Real, 4>{float_name##_rn(__VA_ARGS__), float_name##_rz(__VA_ARGS__), float_name##_ru(__VA_ARGS__), \
                            float_name##_rd(__VA_ARGS__)};                                                            \
    } else {                                                                                                          \
      return array<Real, 4>{double_name##_rn(__VA_ARGS__), double_name##_rz(__VA_ARGS__),                             \
                            double_name##_ru(__VA_ARGS__), double_name##_rd(__VA_ARGS__)};                            \
    }                                                                                                                 \
  }()
  Bits random(1);
  Tally tally;
  const auto check = [&](array<Real, 4> r, auto side, int operation) {
    check_roundings(tally, r[0], r[1], r[2], r[3], side, operation);
  };
  for (int i = 0; i < 4000; ++i) {
    const Real x = random_real(random, Real()), y = random_real(random, Real()), z = random_real(random, Real());
    const int sign = y < 0 ? -1 : 1;
    check(
        FOUR(__fadd, __dadd, x, y), [&](Real r) { return side_of_sum(Exact(x) + Exact(y), r); }, 1);
    check(
        FOUR(__fsub, __dsub, x, y), [&](Real r) { return side_of_sum(Exact(x) - Exact(y), r); }, 2);
    check(
        FOUR(__fmul, __dmul, x, y), [&](Real r) { return side_of_sum(product(x, y), r); }, 3);
    check(
        FOUR(__fmaf, __fma, x, y, z), [&](Real r) { return side_of_sum(product(x, y) + Exact(z), r); }, 4);
    check(
        FOUR(__fdiv, __ddiv, x, y), [&](Real r) { return sign * (Exact(x) - product(r, y)).sign(); }, 5);
    check(
        FOUR(__frcp, __drcp, y), [&](Real r) { return sign * (Exact(1.0) - product(r, y)).sign(); }, 6);
    if (x > 0) {
      const auto side = [&](Real r) { return r < 0 ? 1 : (Exact(x) - product(r, r)).sign(); };
      const array<Real, 4> r = [&] {
        if constexpr (is_float)
          return array<Real, 4>{__fsqrt_rn(x), __fsqrt_rz(x), __fsqrt_ru(x), __fsqrt_rd(x)};
        else
          return array<Real, 4>{__dsqrt_rn(x), __dsqrt_rz(x), __dsqrt_ru(x), __dsqrt_rd(x)};
      }();
      check(r, side, 7);
    }
  }
#undef FOUR
  CHECK_TALLY(tally);
  CHECK(fegetround() == FE_TONEAREST);
}

TEST_CASE("Directed roundings at the ends of the range") {
  CHECK(__fadd_rz(3e38f, 3e38f) == 0x1.fffffep127f);
  CHECK(__fmul_ru(-3e38f, 3e38f) == -0x1.fffffep127f);
  CHECK(__fmul_rd(-3e38f, 3e38f) == -INFINITY);
  CHECK(__fmul_ru(1e-30f, 1e-30f) == 0x1p-149f);
  CHECK(__fmul_rz(1e-30f, 1e-30f) == 0);
  CHECK(__fmaf_rd(1e-30f, -1e-30f, 1.f) == 0x1.fffffep-1f);
  CHECK(__dadd_ru(1.0, 1e-300) == 0x1.0000000000001p0);
}

TEST_CASE("The _rn forms are never fused") {
  // x * x needs one bit more than a float has; fused with the sum, that bit would come out.
  const float x = hidden(1 + 0x1p-12f), square = hidden(x * x);
  CHECK(__fadd_rn(__fmul_rn(x, x), -square) == 0);
  CHECK(__fsub_rn(__fmul_rn(x, x), square) == 0);
  CHECK(__fmul_rn(x, x) - square == 0);
  CHECK(__fmaf_rn(x, x, -square) == 0x1p-24f);
  const double y = hidden(1 + 0x1p-27), wide_square = hidden(y * y);
  CHECK(__dadd_rn(__dmul_rn(y, y), -wide_square) == 0);
  CHECK(__fma_rn(y, y, -wide_square) == 0x1p-54);
  float sums[8];
  for (int i = 0; i < 8; ++i) sums[i] = __fadd_rn(__fmul_rn(x, hidden(x)), -square);  // a loop to vectorize
  CHECK(*max_element(sums, sums + 8) == 0);
}

TEST_CASE("__frsqrt_rn is the nearest float for every mantissa") {
  // f is nearest if (f - half a unit)^2 x < 1 < (f + half a unit)^2 x, in integers: x 2^23 and f 2^26.
  Tally tally;
  const Wide one = Wide{1} << 75;
  for (uint32_t bits = 0x3f800000; bits < 0x40800000; ++bits) {
    const float x = __uint_as_float(bits), f = __frsqrt_rn(x);
    const auto scaled = static_cast<int64_t>(ldexp(static_cast<double>(f), 26));
    const Wide mantissa = static_cast<int64_t>(ldexp(static_cast<double>(x), 23));
    const Wide below = scaled - (f <= 0.5f ? 1 : 2), above = scaled + (f >= 1 ? 4 : 2);
    if (!(below * below * mantissa < one && one < above * above * mantissa)) tally.expect(f, NAN, x);
    ++tally.compared;
  }
  CHECK_TALLY(tally);
  CHECK(__frsqrt_rn(0x1p-149f) == static_cast<float>(1 / std::sqrt(0x1p-149)));
}

TEST_CASE("Bits of floating-point numbers") {
  CHECK(__float_as_int(-0.f) == numeric_limits<int>::min());
  CHECK(__float_as_uint(1.f) == 0x3f800000);
  CHECK(__int_as_float(0x7f800000) == INFINITY);
  CHECK(__uint_as_float(0xbf800000) == -1);
  CHECK(__double_as_longlong(-2.0) == static_cast<long long>(0xc000000000000000));
  CHECK(__longlong_as_double(0x3ff8000000000000) == 1.5);
  CHECK(__double2hiint(-1.5) == static_cast<int>(0xbff80000));
  CHECK(__double2loint(0x1.00000deadbeefp0) == static_cast<int>(0xdeadbeef));
  CHECK(__hiloint2double(static_cast<int>(0xbff80000), -1) ==
        __longlong_as_double(static_cast<long long>(0xbff80000ffffffff)));
}

TEST_CASE_TEMPLATE("Reals to integers: four roundings, saturation, NaN", Real, float, double) {
  const vector<Real> values = {Real(0),      Real(-0.0),    Real(0.5),       Real(1.5),          Real(2.5),
                               Real(-0.5),   Real(-1.5),    Real(-2.25),     Real(2147483648.0), Real(-3e9),
                               Real(5e9),    Real(1e19),    Real(1e30),      Real(-1e30),        Real(2147483520),
                               Real(9.2e18), Real(-9.3e18), Real(123456.75), Real(HUGE_VAL),     Real(-HUGE_VAL)};
  Tally tally;
#define EACH(name, Integer, rounding, round_function)                                              \
  for (const Real x : values) {                                                                    \
    const long double rounded = round_function(static_cast<long double>(x));                       \
    const long double high = numeric_limits<Integer>::max(), low = numeric_limits<Integer>::min(); \
    const Integer wanted = rounded >= high  ? numeric_limits<Integer>::max()                       \
                           : rounded <= low ? numeric_limits<Integer>::min()                       \
                                            : static_cast<Integer>(rounded);                       \
    if constexpr (is_same<Real, float>::value) {                                                   \
      tally.expect(__float2##name##_##rounding(static_cast<float>(x)), wanted, x);                 \
    } else {                                                                                       \
      tally.expect(__double2##name##_##rounding(x), wanted, x);                                    \
    }                                                                                              \
  }
#define ALL(name, Integer)           \
  EACH(name, Integer, rn, nearbyint) \
  EACH(name, Integer, rz, trunc)     \
  EACH(name, Integer, ru, ceil)      \
  EACH(name, Integer, rd, floor)
  ALL(int, int)
  ALL(uint, unsigned int)
  ALL(ll, long long)
  ALL(ull, unsigned long long)
#undef ALL
#undef EACH
  CHECK_TALLY(tally);
}

TEST_CASE("A NaN becomes 0, or the top bit alone where either side has 64 bits") {
  CHECK(__float2int_rz(NAN) == 0);
  CHECK(__float2uint_rn(NAN) == 0);
  CHECK(__float2ll_rz(NAN) == numeric_limits<long long>::min());
  CHECK(__float2ull_rz(-NAN) == 1ull << 63);
  CHECK(__double2int_rn(NAN) == numeric_limits<int>::min());
  CHECK(__double2uint_rz(NAN) == 1u << 31);
  CHECK(__double2ll_rz(NAN) == numeric_limits<long long>::min());
}

TEST_CASE("Integers and doubles to floats and doubles, in four roundings") {
  constexpr Layout kFloat{23, 8};
  Bits random(2);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    const auto big = static_cast<long long>(random.next()) >> random.word() % 63 | 1;
    const auto unsigned_big = random.next() >> random.word() % 63 | 1;
    const int x = static_cast<int>(random.word()) >> random.word() % 31 | 1;
    const double d = ldexp(static_cast<double>(big), static_cast<int>(random.word() % 300) - 190);
#define EACH(suffix, mode)                                                                               \
  tally.expect(__float_as_uint(__int2float_##suffix(x)), kFloat.round(Exact(x, 0), Mode::mode), x);      \
  tally.expect(__float_as_uint(__uint2float_##suffix(static_cast<unsigned>(x))),                         \
               kFloat.round(Exact(Wide{static_cast<unsigned>(x)}, 0), Mode::mode), x);                   \
  tally.expect(__float_as_uint(__ll2float_##suffix(big)), kFloat.round(Exact(big, 0), Mode::mode), big); \
  tally.expect(__float_as_uint(__ull2float_##suffix(unsigned_big)),                                      \
               kFloat.round(Exact(Wide{unsigned_big}, 0), Mode::mode), unsigned_big);                    \
  tally.expect(__float_as_uint(__double2float_##suffix(d)), kFloat.round(Exact(d), Mode::mode), d);
    EACH(rn, nearest)
    EACH(rz, zero)
    EACH(ru, up)
    EACH(rd, down)
#undef EACH
    check_roundings(
        tally, __ll2double_rn(big), __ll2double_rz(big), __ll2double_ru(big), __ll2double_rd(big),
        [&](double r) { return side_of_sum(Exact(big, 0), r); }, 8);
    check_roundings(
        tally, __ull2double_rn(unsigned_big), __ull2double_rz(unsigned_big), __ull2double_ru(unsigned_big),
        __ull2double_rd(unsigned_big), [&](double r) { return side_of_sum(Exact(Wide{unsigned_big}, 0), r); }, 9);
  }
  CHECK_TALLY(tally);
  CHECK(__int2double_rn(numeric_limits<int>::min()) == -2147483648.0);
  CHECK(__uint2double_rn(0xffffffff) == 4294967295.0);
  CHECK(isnan(__double2float_ru(NAN)));
  CHECK(__double2float_rz(1e300) == 0x1.fffffep127f);
}

TEST_CASE("min, max and abs of every kind of number, beside using namespace std") {
  static_assert(is_same<decltype(max(1, 2u)), unsigned int>::value, "");
  static_assert(is_same<decltype(min(1L, 2L)), long>::value, "");
  static_assert(is_same<decltype(max(1LL, 2ULL)), unsigned long long>::value, "");
  static_assert(is_same<decltype(min(1.f, 2.)), double>::value, "");
  static_assert(is_same<decltype(max(1.f, 2.f)), float>::value, "");
  static_assert(is_same<decltype(abs(-1.f)), float>::value && is_same<decltype(::sqrt(2.f)), float>::value, "");
  CHECK(max(-1, 1u) == 0xffffffff);
  CHECK(min(size_t{3}, size_t{2}) == 2);
  CHECK(max(short{3}, short{4}) == 4);
  CHECK(min(NAN, 1.f) == 1.f);
  CHECK(max(1.0, static_cast<double>(NAN)) == 1.0);
  CHECK(min(-1LL, 0LL) == -1);
  CHECK(abs(-2.5) == 2.5);
  CHECK(abs(-3LL) == 3);
  CHECK(umin(1, 0xffffffff) == 1);
  CHECK(llmax(-5, 3) == 3);
  CHECK(ullmin(1ull << 63, 5) == 5);
  CHECK(::isnan(NAN));
  CHECK(::isinf(-INFINITY));
}

TEST_CASE("Fast functions are close to the exact ones and share their special values") {
  Bits random(3);
  Tally tally;
  const auto near = [&](float got, double wanted, float x, int which) {
    tally.expect(fabs(got - wanted) <= 2 * 0x1p-23 * fabs(wanted) + 0x1p-149, true, x, got, which);
  };
  for (int i = 0; i < 20000; ++i) {
    const float x = static_cast<float>(random.word()) * 0x1p-28f + 0x1p-20f;
    const double d = x;
    near(__expf(x), exp(d), x, 1);
    near(__exp10f(x), pow(10, d), x, 2);
    near(__logf(x), log(d), x, 3);
    near(__log2f(x), log2(d), x, 4);
    near(__log10f(x), log10(d), x, 5);
    near(__sinf(x), sin(d), x, 6);
    near(__cosf(x), cos(d), x, 7);
    near(__tanf(x), tan(d), x, 8);
    near(__powf(x, 1.75f), pow(d, 1.75), x, 9);
    near(__fdividef(3, x), 3 / d, x, 10);
    near(rsqrtf(x), 1 / sqrt(d), x, 11);
    float sine = 0, cosine = 0;
    __sincosf(x, &sine, &cosine);
    near(sine, sin(d), x, 12);
    near(cosine, cos(d), x, 13);
  }
  CHECK_TALLY(tally);
  CHECK(isnan(__powf(-2, 2)));
  CHECK(__saturatef(1.5f) == 1);
  CHECK(__saturatef(0.25f) == 0.25f);
  CHECK(__saturatef(NAN) == 0);
  CHECK(rsqrt(0.f) == INFINITY);
  CHECK(rsqrtf(-0.f) == -INFINITY);
  CHECK(isnan(rsqrt(-1.0)));
  CHECK(exp10(2.f) == 100.f);
}

TEST_CASE("Special functions match values computed to twenty digits with mpmath") {
  struct Sample {
    double (*function)(double);
    double x, wanted;
  };
  const Sample samples[] = {
      {erfinv, 1e-10, 8.8622692545275804594e-11},
      {erfinv, 0.25, 0.22531205501217810473},
      {erfinv, 0.75, 0.81341984759761854169},
      {erfinv, -0.999, -2.3267537655135244939},
      {erfcinv, 1e-300, 26.209469960516123886},
      {erfcinv, 1e-20, 6.6015806223551425656},
      {erfcinv, 0.3, 0.73286907795921686905},
      {erfcinv, 1.75, -0.81341984759761854169},
      {normcdf, -37.0, 5.7255712225245768382e-300},
      {normcdf, -5.25, 7.6049605164887142511e-8},
      {normcdf, -0.3, 0.38208857781104736693},
      {normcdf, 1.0, 0.84134474606854294859},
      {normcdf, 6.0, 0.99999999901341235496},
      {normcdfinv, 1e-250, -33.79958617269483747},
      {normcdfinv, 0.025, -1.9599639845400542118},
      {normcdfinv, 0.975, 1.9599639845400538556},
      {erfcx, -10.5, 1.5205357150037179757e+48},
      {erfcx, -1.0, 5.0089800807622834663},
      {erfcx, 0.5, 0.61569034419292587487},
      {erfcx, 5.0, 0.11070463773306862637},
      {erfcx, 9.999, 0.056146552603965939885},
      {erfcx, 10.001, 0.05613543397942034875},
      {erfcx, 100.0, 5.6416137829894292027e-3},
      {erfcx, 1e8, 5.6418958354775625874e-9},
      {cyl_bessel_i0, 0.5, 1.0634833707413235193},
      {cyl_bessel_i0, -3.5, 7.3782034322254796603},
      {cyl_bessel_i0, 700.0, 1.5295933476718737363e+302},
      {cyl_bessel_i1, 1e-05, 5.000000000062500409e-6},
      {cyl_bessel_i1, -3.5, -6.2058349222583654736},
      {cyl_bessel_i1, 700.0, 1.5285003902339006881e+302},
      {rcbrt, -2.0, -0.79370052598409973738},
      {rcbrt, 1e-300, 9.9999999999999999165e+99},
      {rsqrt, 2.0, 0.7071067811865475244},
      {rsqrt, 1e300, 9.9999999999999997375e-151},
      {sinpi, 0.1, 0.30901699437494744069},
      {sinpi, 1234567.125, -0.38268343236508977173},
      {sinpi, 1e-300, 3.1415926535897933172e-300},
      {cospi, -0.75, -0.7071067811865475244},
      {cospi, 0.4999, 3.1415926019123196964e-4},
  };
  for (const Sample& sample : samples) {
    CAPTURE(sample.x);
    CAPTURE(sample.wanted);
    CHECK(fabs(sample.function(sample.x) - sample.wanted) <=
          4 * numeric_limits<double>::epsilon() * fabs(sample.wanted));
  }
  CHECK(erfinvf(0.25f) == 0.2253120550f);
  CHECK(normcdf(1.f) == 0.8413447461f);
  CHECK(erfinv(1.0) == HUGE_VAL);
  CHECK(erfcinv(2.0) == -HUGE_VAL);
  CHECK(isnan(erfinv(1.5)));
  CHECK(normcdf(-HUGE_VAL) == 0);
  CHECK(normcdf(HUGE_VAL) == 1);
  CHECK(isnan(normcdf(NAN)));
  CHECK(erfcx(-HUGE_VAL) == HUGE_VAL);
  CHECK(erfcx(HUGE_VAL) == 0);
  CHECK(sinpi(3.0) == 0);
  CHECK(cospi(0.5f) == 0);
  CHECK(cospi(1e15) == 1);
  float sine = 0, cosine = 0;
  sincospi(0.5f, &sine, &cosine);
  CHECK(sine == 1);
  CHECK(cosine == 0);
}

TEST_CASE("Norms neither overflow nor lose small components") {
  const float small[] = {3e-30f, 4e-30f}, large[] = {3e38f, 0, 0};
  const double huge[] = {3e300, 4e300};
  CHECK(norm(2, huge) == doctest::Approx(5e300).epsilon(1e-15));
  CHECK(normf(2, small) == doctest::Approx(5e-30).epsilon(1e-6));
  CHECK(normf(3, large) == 3e38f);
  CHECK(rnormf(2, small) == doctest::Approx(2e29).epsilon(1e-6));
  CHECK(norm3df(1e25f, 2e25f, 2e25f) == 3e25f);
  CHECK(norm3d(1e200, 2e200, 2e200) == doctest::Approx(3e200).epsilon(1e-15));
  CHECK(norm4d(1, 1, 1, 1) == 2);
  CHECK(norm4df(2, 4, 5, 6) == 9);
  CHECK(rnorm3df(1, 2, 2) == 1 / 3.f);
  CHECK(rhypot(3.0, 4.0) == 0.2);
  CHECK(rhypotf(3, 4) == 0.2f);
}

TEST_CASE("Counting, reversing, permuting and shifting bits") {
  Bits random(4);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t x = random.next() >> random.word() % 64;
    const auto low = static_cast<uint32_t>(x);
    const uint32_t y = random.word(), shift = random.word() % 70;
    int ones = 0, first = 0, leading = 64;
    uint64_t reversed = 0;
    for (int bit = 0; bit < 64; ++bit) {
      const bool set = x >> bit & 1;
      ones += set;
      reversed |= static_cast<uint64_t>(set) << (63 - bit);
      if (set && first == 0) first = bit + 1;
      if (set) leading = 63 - bit;
    }
    tally.expect(__popcll(x), ones, x);
    tally.expect(__ffsll(static_cast<long long>(x)), first, x);
    tally.expect(__clzll(static_cast<long long>(x)), leading, x);
    tally.expect<uint64_t>(__brevll(x), reversed, x);
    tally.expect<uint32_t>(__brev(low), static_cast<uint32_t>(reversed >> 32), x);
    tally.expect(__popc(low) + __popc(static_cast<uint32_t>(x >> 32)), ones, x);
    tally.expect(__clz(static_cast<int>(low)), x >> 32 ? __clz(static_cast<int>(low)) : leading - 32, x);
    tally.expect(__ffs(static_cast<int>(low)), first <= 32 ? first : 0, x);

    uint32_t left = y, right = low, hi = y, lo = low;  // the pair (y, low), shifted bit by bit
    for (uint32_t s = 0; s < shift % 32; ++s, lo <<= 1) left = left << 1 | lo >> 31;
    lo = low;
    for (uint32_t s = 0; s < shift % 32; ++s, hi >>= 1) right = right >> 1 | hi << 31;
    tally.expect(__funnelshift_l(lo, y, shift), left, lo, y, shift);
    tally.expect(__funnelshift_r(lo, y, shift), right, lo, y, shift);
    tally.expect(__funnelshift_lc(lo, y, shift), shift >= 32 ? lo : left, lo, y, shift);
    tally.expect(__funnelshift_rc(lo, y, shift), shift >= 32 ? y : right, lo, y, shift);

    unsigned char bytes[8];
    memcpy(bytes, &lo, 4);
    memcpy(bytes + 4, &y, 4);
    const uint32_t selector = random.word();
    const uint32_t permuted = bytes[selector & 7] | bytes[selector >> 4 & 7] << 8 | bytes[selector >> 8 & 7] << 16 |
                              static_cast<uint32_t>(bytes[selector >> 12 & 7]) << 24;
    tally.expect(__byte_perm(lo, y, selector), permuted, lo, y, selector);
  }
  CHECK_TALLY(tally);
  CHECK(__clz(0) == 32);
  CHECK(__ffs(0) == 0);
  CHECK(__nv_bswap32(0x01020304) == 0x04030201);
  CHECK(__fns(0b101100, 0, 1) == 2);
  CHECK(__fns(0b101100, 3, 2) == 5);
  CHECK(__fns(0b101100, 5, -3) == 2);
  CHECK(__fns(0b101100, 3, 0) == 3);
  CHECK(__fns(0b101100, 4, 0) == 0xffffffff);
  CHECK(__fns(0b101100, 0, 4) == 0xffffffff);
}

TEST_CASE("High products, 24-bit products, averages and differences") {
  Bits random(5);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    const uint64_t x = random.next(), y = random.next();
    const auto a = static_cast<int32_t>(x >> random.word() % 32), b = static_cast<int32_t>(y);
    const auto ua = static_cast<uint32_t>(a), ub = static_cast<uint32_t>(b);
    const auto sx = static_cast<int64_t>(x), sy = static_cast<int64_t>(y);
    tally.expect(__mulhi(a, b), static_cast<int>(Wide{a} * b >> 32), a, b);
    tally.expect(__umulhi(ua, ub), static_cast<uint32_t>(Wide{ua} * ub >> 32), a, b);
    tally.expect<int64_t>(__mul64hi(sx, sy), static_cast<int64_t>(Wide{sx} * sy >> 64), sx, sy);
    // Schoolbook in 32-bit digits.
    const uint64_t x0 = x & 0xffffffff, x1 = x >> 32, y0 = y & 0xffffffff, y1 = y >> 32;
    const uint64_t middle = x1 * y0 + (x0 * y0 >> 32), other = x0 * y1 + (middle & 0xffffffff);
    tally.expect<uint64_t>(__umul64hi(x, y), x1 * y1 + (middle >> 32) + (other >> 32), x, y);
    const auto low24 = [](int32_t v) { return Wide{(v & 0xffffff) - (v & 0x800000 ? 0x1000000 : 0)}; };
    tally.expect(__mul24(a, b), static_cast<int>(low24(a) * low24(b)), a, b);
    tally.expect(__umul24(ua, ub), static_cast<uint32_t>(uint64_t{ua & 0xffffff} * (ub & 0xffffff)), a, b);
    tally.expect(__sad(a, b, 7), static_cast<uint32_t>(llabs(int64_t{a} - b) + 7), a, b);
    tally.expect(__usad(ua, ub, 7), static_cast<uint32_t>(llabs(int64_t{ua} - int64_t{ub}) + 7), a, b);
    tally.expect(__hadd(a, b), static_cast<int>(floor((static_cast<double>(a) + b) / 2)), a, b);
    tally.expect(__rhadd(a, b), static_cast<int>(ceil((static_cast<double>(a) + b) / 2)), a, b);
    tally.expect(__uhadd(ua, ub), static_cast<uint32_t>(floor((static_cast<double>(ua) + ub) / 2)), a, b);
    tally.expect(__urhadd(ua, ub), static_cast<uint32_t>(ceil((static_cast<double>(ua) + ub) / 2)), a, b);
  }
  CHECK_TALLY(tally);
}

TEST_CASE("Dot products of bytes and shorts") {
  Bits random(6);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = i == 0 ? 0x80808080 : random.word(), b = i == 0 ? 0x80808080 : random.word(), c = random.word();
    const auto sa = static_cast<int>(a), sb = static_cast<int>(b), sc = static_cast<int>(c);
    char4 a4, b4;
    short2 a2;
    memcpy(&a4, &a, 4);
    memcpy(&b4, &b, 4);
    memcpy(&a2, &a, 4);
    uchar4 ua4, ub4;
    ushort2 ua2;
    memcpy(&ua4, &a, 4);
    memcpy(&ub4, &b, 4);
    memcpy(&ua2, &a, 4);
    const auto dot = static_cast<int>(c + static_cast<uint32_t>(a4.x * b4.x + a4.y * b4.y + a4.z * b4.z + a4.w * b4.w));
    tally.expect(__dp4a(sa, sb, sc), dot, a, b, c);
    tally.expect(__dp4a(a4, b4, sc), dot, a, b, c);
    const uint32_t unsigned_dot =
        c + static_cast<uint32_t>(ua4.x * ub4.x + ua4.y * ub4.y + ua4.z * ub4.z + ua4.w * ub4.w);
    tally.expect(__dp4a(a, b, c), unsigned_dot, a, b, c);
    tally.expect(__dp4a(ua4, ub4, c), unsigned_dot, a, b, c);
    const auto low = static_cast<int>(c + static_cast<uint32_t>(a2.x * b4.x + a2.y * b4.y));
    const auto high = static_cast<int>(c + static_cast<uint32_t>(a2.x * b4.z + a2.y * b4.w));
    tally.expect(__dp2a_lo(sa, sb, sc), low, a, b, c);
    tally.expect(__dp2a_hi(sa, sb, sc), high, a, b, c);
    tally.expect(__dp2a_lo(a2, b4, sc), low, a, b, c);
    tally.expect(__dp2a_hi(a2, b4, sc), high, a, b, c);
    tally.expect(__dp2a_lo(a, b, c), c + static_cast<uint32_t>(ua2.x * ub4.x + ua2.y * ub4.y), a, b, c);
    tally.expect(__dp2a_hi(ua2, ub4, c), c + static_cast<uint32_t>(ua2.x * ub4.z + ua2.y * ub4.w), a, b, c);
  }
  CHECK_TALLY(tally);
}

namespace {

// A function of packed words and what it must do to each lane, in unbounded integers.
struct Packed {
  unsigned int (*two)(unsigned int, unsigned int);
  unsigned int (*four)(unsigned int, unsigned int);
  bool is_signed;
  long (*lane)(long x, long y, long low, long high);  // low and high are the lane's limits
};

long clamp_lane(long x, long low, long high) { return x < low ? low : x > high ? high : x; }

unsigned int by_lanes(const Packed& packed, int bits, unsigned int a, unsigned int b) {
  const long size = 1L << bits, low = packed.is_signed ? -size / 2 : 0, high = low + size - 1;
  const auto lane = [&](unsigned int word, int place) {
    const long x = word >> place & (size - 1);
    return packed.is_signed && x > high ? x - size : x;
  };
  unsigned int result = 0;
  for (int place = 0; place < 32; place += bits) {
    const long value = packed.lane(lane(a, place), lane(b, place), low, high);
    result |= static_cast<unsigned int>(value & (size - 1)) << place;
  }
  return result;
}

#define PACKED(name, is_signed, expression)                                  \
  {                                                                          \
    name##2, name##4, is_signed, [](long x, long y, long low, long high) {   \
      static_cast<void>(y), static_cast<void>(low), static_cast<void>(high); \
      return static_cast<long>(expression);                                  \
    }                                                                        \
  }
#define UNARY(name, expression)                                                                                       \
  {                                                                                                                   \
    [](unsigned int a, unsigned int) { return name##2(a); }, [](unsigned int a, unsigned int) { return name##4(a); }, \
        true, [](long x, long, long low, long high) {                                                                 \
          static_cast<void>(low), static_cast<void>(high);                                                            \
          return static_cast<long>(expression);                                                                       \
        }                                                                                                             \
  }
const Packed kPacked[] = {
    UNARY(__vabs, labs(x)),
    UNARY(__vabsss, clamp_lane(labs(x), low, high)),
    UNARY(__vneg, -x),
    UNARY(__vnegss, clamp_lane(-x, low, high)),
    PACKED(__vadd, true, x + y),
    PACKED(__vaddss, true, clamp_lane(x + y, low, high)),
    PACKED(__vaddus, false, clamp_lane(x + y, low, high)),
    PACKED(__vsub, true, x - y),
    PACKED(__vsubss, true, clamp_lane(x - y, low, high)),
    PACKED(__vsubus, false, clamp_lane(x - y, low, high)),
    PACKED(__vabsdiffs, true, labs(x - y)),
    PACKED(__vabsdiffu, false, labs(x - y)),
    PACKED(__vavgs, true, round((x + y) / 2.0)),
    PACKED(__vavgu, false, round((x + y) / 2.0)),
    PACKED(__vhaddu, false, (x + y) / 2),
    PACKED(__vmaxs, true, std::max(x, y)),
    PACKED(__vmaxu, false, std::max(x, y)),
    PACKED(__vmins, true, std::min(x, y)),
    PACKED(__vminu, false, std::min(x, y)),
    PACKED(__vcmpeq, true, x == y ? -1 : 0),
    PACKED(__vcmpne, true, x != y ? -1 : 0),
    PACKED(__vcmplts, true, x < y ? -1 : 0),
    PACKED(__vcmples, true, x <= y ? -1 : 0),
    PACKED(__vcmpgts, true, x > y ? -1 : 0),
    PACKED(__vcmpges, true, x >= y ? -1 : 0),
    PACKED(__vcmpltu, false, x < y ? -1 : 0),
    PACKED(__vcmpleu, false, x <= y ? -1 : 0),
    PACKED(__vcmpgtu, false, x > y ? -1 : 0),
    PACKED(__vcmpgeu, false, x >= y ? -1 : 0),
    PACKED(__vseteq, true, x == y),
    PACKED(__vsetne, true, x != y),
    PACKED(__vsetlts, true, x < y),
    PACKED(__vsetles, true, x <= y),
    PACKED(__vsetgts, true, x > y),
    PACKED(__vsetges, true, x >= y),
    PACKED(__vsetltu, false, x < y),
    PACKED(__vsetleu, false, x <= y),
    PACKED(__vsetgtu, false, x > y),
    PACKED(__vsetgeu, false, x >= y),
};
#undef PACKED
#undef UNARY

// Words whose lanes are often at or beside their limits.
unsigned int packed_word(Bits& random) {
  const unsigned int edges[] = {0x00, 0x01, 0x7f, 0x80, 0x81, 0xff, 0xfe};
  unsigned int word = 0;
  for (int place = 0; place < 32; place += 8) {
    const unsigned int choice = random.word() % 10;
    word |= (choice < 7 ? edges[choice] : random.word() & 0xff) << place;
  }
  return word;
}

}  // namespace

TEST_CASE("Two shorts or four bytes in a word") {
  Bits random(7);
  Tally tally;
  for (size_t i = 0; i < std::size(kPacked); ++i) {
    for (int k = 0; k < 5000; ++k) {
      const unsigned int a = packed_word(random), b = k % 8 == 0 ? a : packed_word(random);
      tally.expect(kPacked[i].two(a, b), by_lanes(kPacked[i], 16, a, b), i, 2, a, b);
      tally.expect(kPacked[i].four(a, b), by_lanes(kPacked[i], 8, a, b), i, 4, a, b);
    }
  }
  CHECK_TALLY(tally);
  CHECK(__vsads2(0x80000001, 0x7fffffff) == 0xffff + 2);
  CHECK(__vsadu2(0x80000001, 0x7fffffff) == 1 + 0xfffe);
  CHECK(__vsads4(0x807f0001, 0x7f8000ff) == 255 + 255 + 0 + 2);
  CHECK(__vsadu4(0x807f0001, 0x7f8000ff) == 1 + 1 + 0 + 254);
}

TEST_CASE("Steps of dynamic programming") {
  Bits random(8);
  Tally tally;
  for (int i = 0; i < 20000; ++i) {
    const unsigned int a = packed_word(random), b = packed_word(random), c = packed_word(random);
    const auto sa = static_cast<int>(a), sb = static_cast<int>(b), sc = static_cast<int>(c);
    tally.expect(__vimax3_s32(sa, sb, sc), max(sa, max(sb, sc)), a, b, c);
    tally.expect(__vimin3_u32(a, b, c), min(a, min(b, c)), a, b, c);
    tally.expect(__viaddmax_s32(sa, sb, sc), max(static_cast<int>(a + b), sc), a, b, c);
    tally.expect(__viaddmin_u32(a, b, c), min(a + b, c), a, b, c);
    tally.expect(__viaddmin_s32_relu(sa, sb, sc), max(min(static_cast<int>(a + b), sc), 0), a, b, c);
    tally.expect(__vimax_s32_relu(sa, sb), max(max(sa, sb), 0), a, b);
    tally.expect(__vimin_s32_relu(sa, sb), max(min(sa, sb), 0), a, b);
    tally.expect(__vimax3_s16x2(a, b, c), __vmaxs2(a, __vmaxs2(b, c)), a, b, c);
    tally.expect(__vimin3_u16x2(a, b, c), __vminu2(a, __vminu2(b, c)), a, b, c);
    tally.expect(__viaddmax_u16x2(a, b, c), __vmaxu2(__vadd2(a, b), c), a, b, c);
    tally.expect(__viaddmax_s16x2_relu(a, b, c), __vmaxs2(__vmaxs2(__vadd2(a, b), c), 0), a, b, c);
    tally.expect(__vimin_s16x2_relu(a, b), __vmaxs2(__vmins2(a, b), 0), a, b);
    bool first = false, first_low = false;
    tally.expect(__vibmax_s32(sa, sb, &first), max(sa, sb), a, b);
    tally.expect(first, sa >= sb, a, b);
    tally.expect(__vibmin_u16x2(a, b, &first, &first_low), __vminu2(a, b), a, b);
    tally.expect(first, a >> 16 <= b >> 16, a, b);
    tally.expect(first_low, (a & 0xffff) <= (b & 0xffff), a, b);
  }
  CHECK_TALLY(tally);
}
