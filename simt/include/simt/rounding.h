// Rounding to any IEEE-like binary format, written once for float16, bfloat16, float8, float32 and float64.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace simt {

enum class Round { nearest, zero, up, down };

template <class To, class From>
constexpr To bit_cast(From from) {
  return __builtin_bit_cast(To, from);
}

// A number that is no NaN, as sign and significand * 2^exponent; an infinity is split as if it were the next power of
// two.
struct Parts {
  bool negative, infinite;
  uint64_t significand;
  int exponent;
};
template <class Number>
constexpr Parts split(Number x) {
  if constexpr (std::is_floating_point<Number>::value) {
    const uint64_t bits = bit_cast<uint64_t>(static_cast<double>(x));
    const int field = static_cast<int>(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1), leading = field != 0 ? uint64_t{1} << 52 : 0;
    return {bits >> 63 != 0, field == 0x7ff, fraction | leading, (field != 0 ? field : 1) - 1075};
  } else {
    return {x < 0, false, x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x), 0};
  }
}

template <int kMantissaBits, int kExponentBits>
struct Format {
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr uint64_t kSign = uint64_t{1} << (kMantissaBits + kExponentBits);
  static constexpr uint64_t kInfinity = kSign - (uint64_t{1} << kMantissaBits);
  static constexpr uint64_t kNan = kSign - 1;  // CUDA's canonical NaN: every bit but the sign

  // The code of significand * 2^exponent. Codes are in the order of their values, so rounding up is adding one in every
  // binade, and an overflow is a code beyond the last finite one: what becomes of it is the caller's choice.
  // Round::up means away from zero here.
  static constexpr uint64_t encode(uint64_t significand, int exponent, Round mode) {
    if (significand == 0) return 0;
    constexpr int kLowestUnit = 1 - kBias - kMantissaBits;  // exponent of the last bit of a subnormal
    const int top = 63 - __builtin_clzll(significand) + exponent;
    const int unit = top - kMantissaBits > kLowestUnit ? top - kMantissaBits : kLowestUnit;
    const int dropped_bits = unit - exponent;
    uint64_t kept = 0, dropped = significand, half = ~uint64_t{0};  // what 64 or more dropped bits come to
    if (dropped_bits <= 0) {
      kept = significand << -dropped_bits;
      dropped = 0;
    } else if (dropped_bits < 64) {
      kept = significand >> dropped_bits;
      dropped = significand - (kept << dropped_bits);
      half = uint64_t{1} << (dropped_bits - 1);
    }
    const bool nearer_above = dropped > half || (dropped == half && kept % 2 == 1);
    const bool add_one = mode == Round::up ? dropped != 0 : mode == Round::nearest && nearer_above;
    return (static_cast<uint64_t>(unit - kLowestUnit) << kMantissaBits) + kept + add_one;
  }

  // The code of a number of any arithmetic type, overflow as IEEE 754 has it.
  template <class Number>
  static constexpr uint64_t round(Number x, Round mode = Round::nearest) {
    if (x != x) return kNan;
    const Parts parts = split(x);
    const bool nearest = mode == Round::nearest, away = mode == (parts.negative ? Round::down : Round::up);
    uint64_t code = encode(parts.significand, parts.exponent,
                           nearest ? Round::nearest
                           : away  ? Round::up
                                   : Round::zero);
    if (code >= kInfinity) code = nearest || away || parts.infinite ? kInfinity : kInfinity - 1;
    return (parts.negative ? kSign : 0) + code;
  }
};

// Rounding twice can go wrong only when the first rounding lands on a tie of the second. Rounding the first time "to
// odd" (towards zero, with the last bit set when anything was lost) never does, as long as two more bits are kept.
inline float round_to_odd(double x) {
  const float nearest = static_cast<float>(x);
  if (nearest == x || x != x) return nearest;
  const uint32_t bits = bit_cast<uint32_t>(nearest) - (std::fabs(nearest) > std::fabs(x));
  return bit_cast<float>(bits | 1);
}

// a * b + c, such that rounding it again, to 11 bits or fewer, is right. A tie of such a rounding ends in twelve zero
// bits; any other float is as good as the exact sum. The product is exact in double, and `lost` is what the sum lost
// (Knuth).
inline float fma_before_rounding(float a, float b, float c) {
  const double product = static_cast<double>(a) * b, sum = product + c;
  const float nearest = static_cast<float>(sum);
  if ((bit_cast<uint32_t>(nearest) & 0xfff) != 0) return nearest;
  const double c_part = sum - product, lost = (product - (sum - c_part)) + (c - c_part);
  if (!(std::fabs(lost) > 0)) return round_to_odd(sum);
  const uint64_t bits = bit_cast<uint64_t>(sum) - ((lost > 0) != (sum > 0));
  return round_to_odd(bit_cast<double>(bits | 1));
}

// The GPU's conversion to an integer: saturates; a NaN gives 0, or the top bit alone if either side has 64 bits.
template <class Integer, class Real>
Integer to_integer(Real x, Round mode) {
  constexpr bool kTopBit = sizeof(Integer) == 8 || sizeof(Real) == 8;
  if (x != x) return static_cast<Integer>(kTopBit ? uint64_t{1} << (8 * sizeof(Integer) - 1) : 0);
  x = mode == Round::nearest ? std::nearbyint(x)
      : mode == Round::zero  ? std::trunc(x)
      : mode == Round::up    ? std::ceil(x)
                             : std::floor(x);
  constexpr Real limit = static_cast<Real>(std::numeric_limits<Integer>::max() / 2 + 1) * 2;
  if (x >= limit) return std::numeric_limits<Integer>::max();
  if (x < static_cast<Real>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(x);
}

inline float saturate(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }  // a NaN gives 0

}  // namespace simt
