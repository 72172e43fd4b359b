// CUDA's intrinsics on two shorts or four bytes in one word, and those for dynamic programming.
#pragma once
#include <cstdint>
#include <type_traits>

namespace simt {

// f of every lane of the words, put back together; what does not fit a lane is cut off.
template <class Lane, class Function, class... Words>
unsigned int lanes(Function f, Words... words) {
  using Operand = std::conditional_t<sizeof(Lane) < 4, int, int64_t>;  // holds the sum of two lanes
  unsigned int result = 0;
  for (unsigned int i = 0; i < 32; i += 8 * sizeof(Lane)) {
    const auto lane = f(static_cast<Operand>(static_cast<Lane>(words >> i))...);
    result |= static_cast<unsigned int>(static_cast<std::make_unsigned_t<Lane>>(lane)) << i;
  }
  return result;
}
template <class Lane>
unsigned int sum_of_lanes(unsigned int word) {
  unsigned int sum = 0;
  for (unsigned int i = 0; i < 32; i += 8 * sizeof(Lane)) sum += static_cast<Lane>(word >> i);
  return sum;
}
template <class Lane>
int clamp_to(int x) {
  constexpr int kBits = 8 * sizeof(Lane) - std::is_signed<Lane>::value, kMax = (1 << kBits) - 1;
  constexpr int kMin = std::is_signed<Lane>::value ? -kMax - 1 : 0;
  return x < kMin ? kMin : x > kMax ? kMax : x;
}

template <class Number>
Number larger(Number x, Number y) {
  return x > y ? x : y;
}
template <class Number>
Number smaller(Number x, Number y) {
  return x < y ? x : y;
}

}  // namespace simt

// name2 works on shorts and name4 on bytes; an expression sees its operands as int and the lane's type as Lane.
#define SIMT_UNARY_OF(type, name, expression)                        \
  inline unsigned int name(unsigned int a) {                         \
    using Lane [[maybe_unused]] = type;                              \
    return ::simt::lanes<Lane>([](int x) { return expression; }, a); \
  }
#define SIMT_BINARY_OF(type, name, expression)                                 \
  inline unsigned int name(unsigned int a, unsigned int b) {                   \
    using Lane [[maybe_unused]] = type;                                        \
    return ::simt::lanes<Lane>([](int x, int y) { return expression; }, a, b); \
  }
#define SIMT_UNARY(name, expression) \
  SIMT_UNARY_OF(short, name##2, expression) SIMT_UNARY_OF(signed char, name##4, expression)
#define SIMT_SIGNED(name, expression) \
  SIMT_BINARY_OF(short, name##2, expression) SIMT_BINARY_OF(signed char, name##4, expression)
#define SIMT_UNSIGNED(name, expression) \
  SIMT_BINARY_OF(unsigned short, name##2, expression) SIMT_BINARY_OF(unsigned char, name##4, expression)

SIMT_UNARY(__vabs, x < 0 ? -x : x)
SIMT_UNARY(__vabsss, ::simt::clamp_to<Lane>(x < 0 ? -x : x))
SIMT_UNARY(__vneg, -x)
SIMT_UNARY(__vnegss, ::simt::clamp_to<Lane>(-x))
SIMT_SIGNED(__vadd, x + y)
SIMT_SIGNED(__vaddss, ::simt::clamp_to<Lane>(x + y))
SIMT_UNSIGNED(__vaddus, ::simt::clamp_to<Lane>(x + y))
SIMT_SIGNED(__vsub, x - y)
SIMT_SIGNED(__vsubss, ::simt::clamp_to<Lane>(x - y))
SIMT_UNSIGNED(__vsubus, ::simt::clamp_to<Lane>(x - y))
SIMT_SIGNED(__vabsdiffs, x < y ? y - x : x - y)
SIMT_UNSIGNED(__vabsdiffu, x < y ? y - x : x - y)
SIMT_SIGNED(__vavgs, (x + y + (x + y >= 0)) >> 1)  // halves go away from zero
SIMT_UNSIGNED(__vavgu, (x + y + 1) >> 1)
SIMT_UNSIGNED(__vhaddu, (x + y) >> 1)
SIMT_SIGNED(__vmaxs, ::simt::larger(x, y))
SIMT_UNSIGNED(__vmaxu, ::simt::larger(x, y))
SIMT_SIGNED(__vmins, ::simt::smaller(x, y))
SIMT_UNSIGNED(__vminu, ::simt::smaller(x, y))

// A comparison gives all ones (vcmp) or one (vset) in each lane where it holds.
#define SIMT_COMPARE(kind, name, operation) \
  SIMT_##kind(__vcmp##name, x operation y ? -1 : 0) SIMT_##kind(__vset##name, x operation y)
SIMT_COMPARE(SIGNED, eq, ==)
SIMT_COMPARE(SIGNED, ne, !=)
SIMT_COMPARE(SIGNED, lts, <)
SIMT_COMPARE(SIGNED, les, <=)
SIMT_COMPARE(SIGNED, gts, >)
SIMT_COMPARE(SIGNED, ges, >=)
SIMT_COMPARE(UNSIGNED, ltu, <)
SIMT_COMPARE(UNSIGNED, leu, <=)
SIMT_COMPARE(UNSIGNED, gtu, >)
SIMT_COMPARE(UNSIGNED, geu, >=)
#undef SIMT_COMPARE

inline unsigned int __vsads2(unsigned int a, unsigned int b) {
  return ::simt::sum_of_lanes<unsigned short>(__vabsdiffs2(a, b));
}
inline unsigned int __vsadu2(unsigned int a, unsigned int b) {
  return ::simt::sum_of_lanes<unsigned short>(__vabsdiffu2(a, b));
}
inline unsigned int __vsads4(unsigned int a, unsigned int b) {
  return ::simt::sum_of_lanes<unsigned char>(__vabsdiffs4(a, b));
}
inline unsigned int __vsadu4(unsigned int a, unsigned int b) {
  return ::simt::sum_of_lanes<unsigned char>(__vabsdiffu4(a, b));
}
#undef SIMT_UNARY
#undef SIMT_SIGNED
#undef SIMT_UNSIGNED
#undef SIMT_UNARY_OF
#undef SIMT_BINARY_OF

// --- Dynamic programming: a sum, a minimum and a maximum in one step; relu holds the result at zero or above ---------
#define SIMT_THREE(Word, type, name, expression)                                                               \
  inline Word name(Word a, Word b, Word c) {                                                                   \
    using Lane [[maybe_unused]] = type;                                                                        \
    return static_cast<Word>(::simt::lanes<Lane>([](auto x, auto y, auto z) { return expression; }, a, b, c)); \
  }
#define SIMT_STEP(name, expression)                                        \
  SIMT_THREE(int, int, name##_s32, expression)                             \
  SIMT_THREE(unsigned int, unsigned int, name##_u32, expression)           \
  SIMT_THREE(unsigned int, short, name##_s16x2, expression)                \
  SIMT_THREE(unsigned int, unsigned short, name##_u16x2, expression)       \
  SIMT_THREE(int, int, name##_s32_relu, ::simt::larger(expression, 0 * x)) \
  SIMT_THREE(unsigned int, short, name##_s16x2_relu, ::simt::larger(expression, 0 * x))
SIMT_STEP(__vimax3, ::simt::larger(x, ::simt::larger(y, z)))
SIMT_STEP(__vimin3, ::simt::smaller(x, ::simt::smaller(y, z)))
SIMT_STEP(__viaddmax, ::simt::larger<decltype(z)>(static_cast<Lane>(x + y), z))
SIMT_STEP(__viaddmin, ::simt::smaller<decltype(z)>(static_cast<Lane>(x + y), z))
#undef SIMT_STEP
#undef SIMT_THREE

inline int __vimax_s32_relu(int a, int b) { return __vimax3_s32(a, b, 0); }
inline int __vimin_s32_relu(int a, int b) { return __vimin3_s32_relu(a, b, b); }
inline unsigned int __vimax_s16x2_relu(unsigned int a, unsigned int b) { return __vimax3_s16x2(a, b, 0); }
inline unsigned int __vimin_s16x2_relu(unsigned int a, unsigned int b) { return __vimin3_s16x2_relu(a, b, b); }

// The larger or smaller of two, and whether it is the first.
#define SIMT_CHOICE(Word, name, operation) \
  inline Word name(Word a, Word b, bool* first) { return (*first = a operation b) ? a : b; }
#define SIMT_CHOICE_OF_HALVES(Half, name, operation)                                            \
  inline unsigned int name(unsigned int a, unsigned int b, bool* first_high, bool* first_low) { \
    *first_high = static_cast<Half>(a >> 16) operation static_cast<Half>(b >> 16);              \
    *first_low = static_cast<Half>(a) operation static_cast<Half>(b);                           \
    return ((*first_high ? a : b) & 0xffff0000) | ((*first_low ? a : b) & 0xffff);              \
  }
SIMT_CHOICE(int, __vibmax_s32, >=)
SIMT_CHOICE(int, __vibmin_s32, <=)
SIMT_CHOICE(unsigned int, __vibmax_u32, >=)
SIMT_CHOICE(unsigned int, __vibmin_u32, <=)
SIMT_CHOICE_OF_HALVES(short, __vibmax_s16x2, >=)
SIMT_CHOICE_OF_HALVES(short, __vibmin_s16x2, <=)
SIMT_CHOICE_OF_HALVES(unsigned short, __vibmax_u16x2, >=)
SIMT_CHOICE_OF_HALVES(unsigned short, __vibmin_u16x2, <=)
#undef SIMT_CHOICE
#undef SIMT_CHOICE_OF_HALVES
