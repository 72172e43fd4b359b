// The oracle of the numeric tests: exact numbers as wide integers, and rounding by search among a format's values. It
// shares nothing with the code under test.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>

__extension__ typedef __int128 Wide;

// A sum of powers of two from 2^-512 to 2^382, with its sign: every float, the product of any two, and their sums.
class Exact {
 public:
  Exact(double x) {
    int exponent = 0;
    const double fraction = std::frexp(x, &exponent);
    *this = Exact(static_cast<Wide>(std::ldexp(fraction, 53)), exponent - 53);
  }
  Exact(Wide significand, int exponent) {
    const bool negative = significand < 0;
    const auto magnitude = static_cast<unsigned __int128>(negative ? -significand : significand);
    const size_t word = static_cast<size_t>(exponent + kUnit) / 64;
    const int shift = (exponent + kUnit) % 64;
    const auto rest = shift == 0 ? magnitude >> 64 : magnitude >> (64 - shift);
    words_.at(word) = static_cast<uint64_t>(magnitude << shift);
    words_.at(word + 1) = static_cast<uint64_t>(rest);
    words_.at(word + 2) = static_cast<uint64_t>(rest >> 64);
    if (negative) *this = Exact() - *this;
  }
  friend Exact operator+(const Exact& a, const Exact& b) {
    Exact sum;
    bool carry = false;
    for (size_t i = 0; i < a.words_.size(); ++i) {
      const uint64_t partial = a.words_[i] + b.words_[i];
      sum.words_[i] = partial + carry;
      carry = partial < a.words_[i] || sum.words_[i] < partial;
    }
    return sum;
  }
  friend Exact operator-(const Exact& a, const Exact& b) {
    Exact complement;
    for (size_t i = 0; i < a.words_.size(); ++i) complement.words_[i] = ~b.words_[i];
    Exact one;
    one.words_[0] = 1;
    return a + complement + one;
  }
  int sign() const {
    if (words_.back() >> 63) return -1;
    for (const uint64_t word : words_) {
      if (word != 0) return 1;
    }
    return 0;
  }
  friend bool operator<(const Exact& a, const Exact& b) { return (a - b).sign() < 0; }
  friend bool operator<=(const Exact& a, const Exact& b) { return (a - b).sign() <= 0; }

 private:
  static constexpr int kUnit = 512;
  std::array<uint64_t, 14> words_{};
  Exact() = default;
};

inline Exact product(double a, double b) {
  int ea = 0, eb = 0;
  const auto fa = static_cast<Wide>(std::ldexp(std::frexp(a, &ea), 53));
  const auto fb = static_cast<Wide>(std::ldexp(std::frexp(b, &eb), 53));
  return Exact(fa * fb, ea + eb - 106);
}

enum class Mode { nearest, zero, up, down };

// A format by its field widths. Codes above the last finite one have the values they would have if the format went on.
struct Layout {
  int mantissa_bits, exponent_bits;
  double value(uint32_t code) const {
    const uint32_t field = code >> mantissa_bits, fraction = code & ((1u << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t significand = fraction | (field != 0 ? 1u << mantissa_bits : 0);
    return std::ldexp(significand, static_cast<int>(field != 0 ? field : 1) - bias - mantissa_bits);
  }
  uint32_t sign_bit() const { return 1u << (mantissa_bits + exponent_bits); }
  uint32_t infinity() const { return sign_bit() - (1u << mantissa_bits); }
  double of_bits(uint32_t bits) const {  // IEEE's reading, with the sign and the special values
    const uint32_t code = bits & (sign_bit() - 1);
    const double magnitude = code > infinity()    ? std::numeric_limits<double>::quiet_NaN()
                             : code == infinity() ? std::numeric_limits<double>::infinity()
                                                  : value(code);
    return bits & sign_bit() ? -magnitude : magnitude;
  }
  // The code of a magnitude, at most one above `last`.
  uint32_t search(const Exact& magnitude, uint32_t last, Mode mode, bool negative) const {
    uint32_t low = 0, high = last + 1;
    if (!(magnitude < Exact(value(high)))) return high;
    while (high - low > 1) {  // value(low) <= magnitude < value(high)
      const uint32_t middle = (low + high) / 2;
      (Exact(value(middle)) <= magnitude ? low : high) = middle;
    }
    if ((magnitude - Exact(value(low))).sign() == 0 || mode == Mode::zero) return low;
    if (mode != Mode::nearest) return (mode == Mode::up) != negative ? high : low;
    const int side = (magnitude + magnitude - Exact(value(low)) - Exact(value(high))).sign();
    return side < 0 ? low : side > 0 ? high : low % 2 == 0 ? low : high;
  }
  // IEEE's rounding of a number that is not zero.
  uint32_t round(const Exact& x, Mode mode) const {
    const bool negative = x.sign() < 0;
    uint32_t code = search(negative ? Exact(0.0) - x : x, infinity() - 1, mode, negative);
    const bool away = mode == Mode::nearest || (mode == Mode::up) != negative;
    if (code == infinity() && (mode == Mode::zero || !away)) code = infinity() - 1;
    return code | (negative ? sign_bit() : 0);
  }
};

// Counts differences and keeps the first, because a doctest CHECK for each of a million cases is too slow.
struct Tally {
  long compared = 0, different = 0;
  std::string first;
  template <class Value, class... Inputs>
  void expect(Value got, Value wanted, Inputs... inputs) {
    ++compared;
    if (got == wanted || different++ != 0) return;
    std::ostringstream text;
    text << std::hexfloat << "got " << +got << ", expected " << +wanted << ", from";
    ((text << ' ' << +inputs), ...);
    first = text.str();
  }
};
#define CHECK_TALLY(tally)       \
  REQUIRE((tally).compared > 0); \
  CHECK_MESSAGE((tally).different == 0, (tally).different << " of " << (tally).compared << ", first: " << (tally).first)

// Random numbers whose every bit counts (xorshift64*).
struct Bits {
  uint64_t state;
  explicit Bits(uint64_t seed) : state(seed) {}
  uint64_t next() {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1d;
  }
  uint32_t word() { return static_cast<uint32_t>(next() >> 32); }
  float finite_float() {
    uint32_t bits = word();
    while ((bits & 0x7f800000) == 0x7f800000) bits = word();
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
};
