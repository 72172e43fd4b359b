// The 8-bit floats against the exact oracle: all 256 codes, every tie and its neighbours, overflow with and without
// saturation, e8m0's two roundings, and the order of the elements in twos and fours.
#include <cuda_fp8.h>

#include <initializer_list>
#include <type_traits>

#include "exact.h"

namespace {

template <class T, class T2, class T4, __nv_fp8_interpretation_t interpretation, int mantissa_bits, uint32_t last_code>
struct Format {
  using One = T;
  using Two = T2;
  using Four = T4;
  static constexpr __nv_fp8_interpretation_t kind = interpretation;
  static constexpr Layout layout{mantissa_bits, 7 - mantissa_bits};
  static constexpr uint32_t last = last_code;  // the largest finite code
  static constexpr bool has_infinity = kind == __NV_E5M2;
  // What a finite number that is not zero becomes.
  static uint32_t round(const Exact& x, bool saturate) {
    const bool negative = x.sign() < 0;
    const uint32_t code = layout.search(negative ? Exact(0.0) - x : x, last, Mode::nearest, negative);
    return (negative ? 0x80 : 0) | (code > last && saturate ? last : code);
  }
  static uint32_t narrow(float x, __nv_saturation_t saturation) { return __nv_cvt_float_to_fp8(x, saturation, kind); }
  static uint32_t narrow(double x, __nv_saturation_t saturation) { return __nv_cvt_double_to_fp8(x, saturation, kind); }
};
using E4m3 = Format<__nv_fp8_e4m3, __nv_fp8x2_e4m3, __nv_fp8x4_e4m3, __NV_E4M3, 3, 0x7e>;
using E5m2 = Format<__nv_fp8_e5m2, __nv_fp8x2_e5m2, __nv_fp8x4_e5m2, __NV_E5M2, 2, 0x7b>;

template <class T>
T of_code(uint32_t code) {
  T x;
  x.__x = static_cast<decltype(x.__x)>(code);
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("Every code widens exactly and comes back", F, E4m3, E5m2) {
  Tally tally;
  for (uint32_t code = 0; code < 0x100; ++code) {
    const uint32_t magnitude = code & 0x7f;
    const float x = static_cast<float>(of_code<typename F::One>(code));
    const __half half = __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), F::kind);
    const bool infinite = F::has_infinity && magnitude == F::last + 1;
    if (magnitude > F::last && !infinite) {
      tally.expect(x != x && __hisnan(half), true, code);
      tally.expect(F::narrow(x, __NV_SATFINITE), 0x7fu, code);
      continue;
    }
    const double wanted = (code & 0x80 ? -1 : 1) * (infinite ? HUGE_VAL : F::layout.value(magnitude));
    tally.expect<double>(x, wanted, code);
    tally.expect(std::signbit(x), code >= 0x80, code);
    tally.expect<double>(__half2float(half), wanted, code);
    tally.expect(F::narrow(x, __NV_NOSAT), code, code);
    tally.expect(F::narrow(x, __NV_SATFINITE), infinite ? code - 1 : code, code);
  }
  CHECK_TALLY(tally);
  CHECK(static_cast<float>(of_code<__nv_fp8_e4m3>(0x7e)) == 448);
  CHECK(static_cast<float>(of_code<__nv_fp8_e5m2>(0x7b)) == 57344);
}

TEST_CASE_TEMPLATE("Ties go to even and their neighbours to the nearer value", F, E4m3, E5m2) {
  Tally tally;
  for (uint32_t code = 0; code < F::last; ++code) {
    const auto middle = static_cast<float>((F::layout.value(code) + F::layout.value(code + 1)) / 2);
    for (const float sign : {1.f, -1.f}) {
      const uint32_t bit = sign < 0 ? 0x80 : 0;
      for (const auto saturation : {__NV_SATFINITE, __NV_NOSAT}) {
        tally.expect(F::narrow(sign * middle, saturation), (code + code % 2) | bit, middle);
        tally.expect(F::narrow(sign * std::nextafter(middle, 0.f), saturation), code | bit, middle);
        tally.expect(F::narrow(sign * std::nextafter(middle, 1e30f), saturation), (code + 1) | bit, middle);
        tally.expect(F::narrow(sign * std::nextafter(double{middle}, 0.), saturation), code | bit, middle);
        tally.expect(F::narrow(sign * std::nextafter(double{middle}, 1e30), saturation), (code + 1) | bit, middle);
      }
    }
  }
  CHECK_TALLY(tally);
}

TEST_CASE_TEMPLATE("Overflow saturates or becomes the format's special value", F, E4m3, E5m2) {
  // Up to half a unit beyond the largest value a number still rounds to it; e4m3's largest is even, e5m2's is odd.
  const double largest = F::layout.value(F::last), middle = (largest + F::layout.value(F::last + 1)) / 2;
  const uint32_t overflow = F::last + 1;
  CHECK(F::narrow(std::nextafter(middle, 0.), __NV_NOSAT) == F::last);
  CHECK(F::narrow(middle, __NV_NOSAT) == (F::last % 2 == 0 ? F::last : overflow));
  CHECK(F::narrow(std::nextafter(middle, 1e30), __NV_NOSAT) == overflow);
  CHECK(F::narrow(-1e30f, __NV_NOSAT) == (0x80 | overflow));
  CHECK(F::narrow(-1e30f, __NV_SATFINITE) == (0x80 | F::last));
  CHECK(F::narrow(INFINITY, __NV_SATFINITE) == F::last);
  CHECK(F::narrow(INFINITY, __NV_NOSAT) == overflow);
  CHECK(F::narrow(1e300, __NV_NOSAT) == overflow);
  CHECK(F::narrow(NAN, __NV_SATFINITE) == 0x7f);
  CHECK(F::narrow(-NAN, __NV_NOSAT) == 0x7f);
  CHECK(F::narrow(-0.f, __NV_SATFINITE) == 0x80);
  CHECK(F::narrow(-1e-300, __NV_SATFINITE) == 0x80);
}

TEST_CASE_TEMPLATE("Random floats and every float16 and bfloat16 round as the oracle says", F, E4m3, E5m2) {
  Bits random(1);
  Tally tally;
  for (int i = 0; i < 60000; ++i) {
    const float x =
        std::ldexp(1 + static_cast<float>(random.word()) * 0x1p-32f, static_cast<int>(random.word() % 40) - 22);
    const float y = i % 2 == 0 ? x : -x;
    tally.expect(F::narrow(y, __NV_SATFINITE), F::round(Exact(y), true), y);
    tally.expect(F::narrow(y, __NV_NOSAT), F::round(Exact(y), false), y);
  }
  for (uint32_t bits = 0; bits < 0x10000; bits += 5) {
    const auto raw = static_cast<unsigned short>(bits);
    const float half = __half2float(__half_raw{raw}), bfloat = __bfloat162float(__nv_bfloat16_raw{raw});
    if (std::isfinite(half) && half != 0) {
      tally.expect<uint32_t>(__nv_cvt_halfraw_to_fp8({raw}, __NV_NOSAT, F::kind), F::round(Exact(half), false), half);
    }
    if (std::isfinite(bfloat) && bfloat != 0) {
      tally.expect<uint32_t>(__nv_cvt_bfloat16raw_to_fp8({raw}, __NV_NOSAT, F::kind), F::round(Exact(bfloat), false),
                             bfloat);
    }
  }
  CHECK_TALLY(tally);
}

TEST_CASE("e8m0 rounds towards zero or up to a power of two") {
  // The oracle: the last power not above |x|, or the first not below it.
  const auto oracle = [](double x, __nv_saturation_t saturation, cudaRoundMode mode) {
    if (x != x) return 0xff;
    int code = 0;
    const double magnitude = std::fabs(x);
    while (code < 0xff && (mode == cudaRoundPosInf ? std::ldexp(1.0, code - 127) < magnitude
                                                   : std::ldexp(1.0, code - 126) <= magnitude)) {
      ++code;
    }
    return code == 0xff && saturation == __NV_SATFINITE ? 0xfe : code;
  };
  Bits random(2);
  Tally tally;
  for (const auto saturation : {__NV_SATFINITE, __NV_NOSAT}) {
    for (const auto mode : {cudaRoundZero, cudaRoundPosInf}) {
      for (uint32_t bits = 0; bits < 0x10000; bits += 3) {
        const __nv_bfloat16_raw raw{static_cast<unsigned short>(bits)};
        const float x = __bfloat162float(raw);
        tally.expect<int>(__nv_cvt_bfloat16raw_to_e8m0(raw, saturation, mode), oracle(x, saturation, mode), x,
                          saturation, mode);
      }
      for (int code = 0; code < 0xff; ++code) {
        const double power = std::ldexp(1.0, code - 127);
        for (const double x : {power, std::nextafter(power, 0.0), std::nextafter(power, HUGE_VAL), -power}) {
          tally.expect<int>(__nv_cvt_double_to_e8m0(x, saturation, mode), oracle(x, saturation, mode), x, saturation,
                            mode);
        }
      }
      for (int i = 0; i < 5000; ++i) {
        const float x = random.finite_float();
        tally.expect<int>(__nv_cvt_float_to_e8m0(x, saturation, mode), oracle(x, saturation, mode), x, saturation,
                          mode);
      }
    }
  }
  for (uint32_t code = 0; code < 0xff; ++code) {
    const double power = std::ldexp(1.0, static_cast<int>(code) - 127);
    tally.expect<double>(__bfloat162float(__nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(code))), power,
                         code);
    tally.expect<double>(static_cast<float>(of_code<__nv_fp8_e8m0>(code)), power, code);
  }
  CHECK_TALLY(tally);
  CHECK(std::isnan(static_cast<float>(of_code<__nv_fp8_e8m0>(0xff))));
  CHECK(__nv_fp8_e8m0((1LL << 60) + 1).__x == 127 + 61);
  CHECK(__nv_fp8_e8m0(-5).__x == 127 + 3);
  CHECK(__nv_fp8_e8m0(HUGE_VAL).__x == 0xfe);
}

TEST_CASE_TEMPLATE("The types: size, constructors that saturate, conversions, order of elements", F, E4m3, E5m2) {
  using One = typename F::One;
  using Two = typename F::Two;
  using Four = typename F::Four;
  static_assert(sizeof(One) == 1 && sizeof(Two) == 2 && sizeof(Four) == 4 && alignof(Four) == 4, "");
  static_assert(std::is_trivially_copyable<Four>::value && std::is_trivially_default_constructible<One>::value, "");
  static_assert(!std::is_convertible<float, One>::value && !std::is_convertible<One, float>::value, "");
  const auto code = [](float x) { return F::narrow(x, __NV_SATFINITE); };

  CHECK(One(1e9f).__x == F::last);
  CHECK(One(1e9).__x == F::last);
  CHECK(One(__half(1.5f)).__x == code(1.5f));
  CHECK(One(__nv_bfloat16(-1.5f)).__x == code(-1.5f));
  CHECK(One(-3).__x == code(-3.f));
  CHECK(One(12ull).__x == code(12.f));
  const One x(-3.5f);
  CHECK(static_cast<double>(x) == -3.5);
  CHECK(static_cast<float>(static_cast<__half>(x)) == -3.5f);
  CHECK(static_cast<float>(static_cast<__nv_bfloat16>(x)) == -3.5f);
  CHECK(static_cast<int>(x) == -3);
  CHECK(static_cast<unsigned>(x) == 0);
  CHECK(static_cast<signed char>(One(400.f)) == 127);
  CHECK(static_cast<int>(of_code<One>(0x7f)) == 0);
  CHECK(static_cast<bool>(x));
  CHECK_FALSE(static_cast<bool>(One(-0.f)));

  const Two two(float2{1, -2});
  CHECK(two.__x == (code(1) | code(-2) << 8));
  CHECK(static_cast<float2>(two).y == -2);
  CHECK(__high2float(static_cast<__half2>(two)) == -2);
  CHECK(Two(__floats2half2_rn(1, -2)).__x == two.__x);
  CHECK(Two(__floats2bfloat162_rn(1, -2)).__x == two.__x);
  CHECK(Two(double2{1, -2}).__x == two.__x);
  CHECK(__nv_cvt_float2_to_fp8x2(float2{1, -2}, __NV_SATFINITE, F::kind) == two.__x);
  CHECK(__nv_cvt_halfraw2_to_fp8x2(__floats2half2_rn(1, -2), __NV_SATFINITE, F::kind) == two.__x);
  CHECK(__nv_cvt_bfloat16raw2_to_fp8x2(__floats2bfloat162_rn(1, -2), __NV_SATFINITE, F::kind) == two.__x);
  CHECK(__high2float(__half2(__nv_cvt_fp8x2_to_halfraw2(two.__x, F::kind))) == -2);

  const Four four(float4{1, -2, 3, 4});
  CHECK(four.__x == (code(1) | code(-2) << 8 | code(3) << 16 | code(4) << 24));
  CHECK(Four(__floats2half2_rn(1, -2), __floats2half2_rn(3, 4)).__x == four.__x);
  CHECK(Four(double4{1, -2, 3, 4}).__x == four.__x);
  CHECK(Four(double4_32a{1, -2, 3, 4}).__x == four.__x);
  const auto wide = static_cast<float4>(four);
  CHECK(wide.x == 1);
  CHECK(wide.y == -2);
  CHECK(wide.z == 3);
  CHECK(wide.w == 4);
}
