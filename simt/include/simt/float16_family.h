// float16 and bfloat16 offer the same functions: this text is included once by cuda_fp16.h and once by cuda_bf16.h,
// each of which says what it is to be called. Arithmetic is done in float and rounded to nearest even: of one
// operation the two roundings give what one would, as float's 24 bits are at least twice half's 11 and two (Figueroa).
//   SIMT_T, SIMT_T2, SIMT_RAW, SIMT_RAW2   the types: __half, __half2, __half_raw, __half2_raw
//   SIMT_NAME, SIMT_NAME2                  the names inside of names, as in __float2half_rn: half, half2
//   SIMT_FORMAT                            a namespace: Code (a simt::Format), widen(bits), narrow(number)
//   SIMT_NO_CONVERSIONS, SIMT_NO_OPERATORS, SIMT_NO_OPERATORS2   defined where the program asked for none
#define SIMT_PASTE(a, b, c) a##b##c
#define SIMT_JOIN(a, b, c) SIMT_PASTE(a, b, c)
#define SIMT_EACH_ROUNDING(define, ...)                                                      \
  define(rn, nearest, __VA_ARGS__) define(rz, zero, __VA_ARGS__) define(ru, up, __VA_ARGS__) \
      define(rd, down, __VA_ARGS__)

struct alignas(2) SIMT_RAW {
  unsigned short x;
};
struct alignas(4) SIMT_RAW2 {
  unsigned short x, y;
};

struct alignas(2) SIMT_T {
 protected:
  unsigned short __x;

 public:
  SIMT_T() = default;
  SIMT_WHOLE(SIMT_T)
  constexpr SIMT_T(const SIMT_RAW& raw) : __x(raw.x) {}
  operator SIMT_RAW() const { return {__x}; }
  operator SIMT_RAW() const volatile { return {__x}; }
  SIMT_T& operator=(const SIMT_RAW& raw) { return __x = raw.x, *this; }
  volatile SIMT_T& operator=(const SIMT_RAW& raw) volatile { return __x = raw.x, *this; }
  volatile SIMT_T& operator=(const volatile SIMT_RAW& raw) volatile { return __x = raw.x, *this; }
#if !defined(SIMT_NO_CONVERSIONS)
  explicit SIMT_T(SIMT_OTHER x);
#define SIMT_FROM(type) \
  SIMT_T(type x) : __x(::simt::SIMT_FORMAT::narrow(x)) {}
#define SIMT_TO(type) \
  operator type() const { return ::simt::to_integer<type>(::simt::SIMT_FORMAT::widen(__x), ::simt::Round::zero); }
  SIMT_FROM(float);
  SIMT_FROM(double);
  SIMT_FROM(short);
  SIMT_FROM(unsigned short);
  SIMT_FROM(int);
  SIMT_FROM(unsigned int);
  SIMT_FROM(long);
  SIMT_FROM(unsigned long);
  SIMT_FROM(long long);
  SIMT_FROM(unsigned long long);
  SIMT_TO(char);
  SIMT_TO(signed char);
  SIMT_TO(unsigned char);
  SIMT_TO(short);
  SIMT_TO(unsigned short);
  SIMT_TO(int);
  SIMT_TO(unsigned int);
  SIMT_TO(long);
  SIMT_TO(unsigned long);
  SIMT_TO(long long);
  SIMT_TO(unsigned long long);
#undef SIMT_FROM
#undef SIMT_TO
  operator float() const { return ::simt::SIMT_FORMAT::widen(__x); }
  constexpr operator bool() const { return (__x & 0x7fff) != 0; }
#endif
};

struct alignas(4) SIMT_T2 {
  SIMT_T x, y;
  SIMT_T2() = default;
  SIMT_WHOLE(SIMT_T2)
  constexpr SIMT_T2(const SIMT_T& a, const SIMT_T& b) : x(a), y(b) {}
  SIMT_T2(const SIMT_RAW2& raw) : x(SIMT_RAW{raw.x}), y(SIMT_RAW{raw.y}) {}
  SIMT_T2& operator=(const SIMT_RAW2& raw) { return *this = SIMT_T2(raw); }
  operator SIMT_RAW2() const { return {static_cast<SIMT_RAW>(x).x, static_cast<SIMT_RAW>(y).x}; }
};

namespace simt::SIMT_FORMAT {
inline unsigned short bits(SIMT_T h) { return static_cast<SIMT_RAW>(h).x; }
inline SIMT_T from_bits(uint64_t bits) { return SIMT_RAW{static_cast<unsigned short>(bits)}; }
inline SIMT_T canonical_nan() { return from_bits(Code::kNan); }
inline float value(SIMT_T h) { return widen(bits(h)); }
template <class Number>
SIMT_T from(Number x) {
  return from_bits(narrow(x));
}
}  // namespace simt::SIMT_FORMAT

// --- Conversions ---------------------------------------------------------------------------------------------------
inline float SIMT_JOIN(__, SIMT_NAME, 2float)(SIMT_T h) {
  return ::simt::SIMT_FORMAT::widen(::simt::SIMT_FORMAT::bits(h));
}
inline SIMT_T SIMT_JOIN(__float2, SIMT_NAME, )(float x) { return ::simt::SIMT_FORMAT::from(x); }
inline SIMT_T SIMT_JOIN(__double2, SIMT_NAME, )(double x) { return ::simt::SIMT_FORMAT::from(x); }

#define SIMT_FROM(suffix, mode, name, type)                                                          \
  inline SIMT_T SIMT_JOIN(__##name##2, SIMT_NAME, _##suffix)(type x) {                               \
    return ::simt::SIMT_FORMAT::from_bits(::simt::SIMT_FORMAT::Code::round(x, ::simt::Round::mode)); \
  }
#define SIMT_TO(suffix, mode, name, type)                                                      \
  inline type SIMT_JOIN(__, SIMT_NAME, 2##name##_##suffix)(SIMT_T h) {                         \
    return ::simt::to_integer<type>(SIMT_JOIN(__, SIMT_NAME, 2float)(h), ::simt::Round::mode); \
  }
#define SIMT_INTEGER(name, type) SIMT_EACH_ROUNDING(SIMT_FROM, name, type) SIMT_EACH_ROUNDING(SIMT_TO, name, type)
SIMT_INTEGER(short, short)
SIMT_INTEGER(ushort, unsigned short)
SIMT_INTEGER(int, int)
SIMT_INTEGER(uint, unsigned int)
SIMT_INTEGER(ll, long long)
SIMT_INTEGER(ull, unsigned long long)
SIMT_TO(rz, zero, char, signed char)
SIMT_TO(rz, zero, uchar, unsigned char)
SIMT_FROM(rz, zero, float, float)
SIMT_FROM(ru, up, float, float)
SIMT_FROM(rd, down, float, float)
inline SIMT_T SIMT_JOIN(__float2, SIMT_NAME, _rn)(float x) { return ::simt::SIMT_FORMAT::from(x); }
#undef SIMT_INTEGER
#undef SIMT_FROM
#undef SIMT_TO

inline short SIMT_JOIN(__, SIMT_NAME, _as_short)(SIMT_T h) { return static_cast<short>(::simt::SIMT_FORMAT::bits(h)); }
inline unsigned short SIMT_JOIN(__, SIMT_NAME, _as_ushort)(SIMT_T h) { return ::simt::SIMT_FORMAT::bits(h); }
inline SIMT_T SIMT_JOIN(__short_as_, SIMT_NAME, )(short x) { return SIMT_RAW{static_cast<unsigned short>(x)}; }
inline SIMT_T SIMT_JOIN(__ushort_as_, SIMT_NAME, )(unsigned short x) { return SIMT_RAW{x}; }

// Pairs: x is the low half, y the high half.
inline SIMT_T2 SIMT_JOIN(make_, SIMT_NAME2, )(SIMT_T x, SIMT_T y) { return {x, y}; }
inline SIMT_T2 SIMT_JOIN(__halves2, SIMT_NAME2, )(SIMT_T a, SIMT_T b) { return {a, b}; }
inline SIMT_T2 SIMT_JOIN(__, SIMT_JOIN(SIMT_NAME, 2, SIMT_NAME2), )(SIMT_T a) { return {a, a}; }
inline SIMT_T2 SIMT_JOIN(__floats2, SIMT_NAME2, _rn)(float a, float b) {
  return {::simt::SIMT_FORMAT::from(a), ::simt::SIMT_FORMAT::from(b)};
}
inline SIMT_T2 SIMT_JOIN(__float2, SIMT_NAME2, _rn)(float a) { return SIMT_JOIN(__floats2, SIMT_NAME2, _rn)(a, a); }
inline SIMT_T2 SIMT_JOIN(__float22, SIMT_NAME2, _rn)(float2 a) {
  return SIMT_JOIN(__floats2, SIMT_NAME2, _rn)(a.x, a.y);
}
inline float __low2float(SIMT_T2 a) { return SIMT_JOIN(__, SIMT_NAME, 2float)(a.x); }
inline float __high2float(SIMT_T2 a) { return SIMT_JOIN(__, SIMT_NAME, 2float)(a.y); }
inline float2 SIMT_JOIN(__, SIMT_NAME2, 2float2)(SIMT_T2 a) { return {__low2float(a), __high2float(a)}; }
inline SIMT_T SIMT_JOIN(__low2, SIMT_NAME, )(SIMT_T2 a) { return a.x; }
inline SIMT_T SIMT_JOIN(__high2, SIMT_NAME, )(SIMT_T2 a) { return a.y; }
inline SIMT_T2 SIMT_JOIN(__low2, SIMT_NAME2, )(SIMT_T2 a) { return {a.x, a.x}; }
inline SIMT_T2 SIMT_JOIN(__high2, SIMT_NAME2, )(SIMT_T2 a) { return {a.y, a.y}; }
inline SIMT_T2 SIMT_JOIN(__lows2, SIMT_NAME2, )(SIMT_T2 a, SIMT_T2 b) { return {a.x, b.x}; }
inline SIMT_T2 SIMT_JOIN(__highs2, SIMT_NAME2, )(SIMT_T2 a, SIMT_T2 b) { return {a.y, b.y}; }
inline SIMT_T2 __lowhigh2highlow(SIMT_T2 a) { return {a.y, a.x}; }

// --- Arithmetic: each function and its twin on pairs ---------------------------------------------------------------
#define SIMT_LOCAL_NAMES                                           \
  using ::simt::SIMT_FORMAT::bits, ::simt::SIMT_FORMAT::from_bits; \
  using ::simt::SIMT_FORMAT::value, ::simt::SIMT_FORMAT::from, ::simt::SIMT_FORMAT::canonical_nan;
#define SIMT_UNARY(name, name2, expression) \
  inline SIMT_T name(SIMT_T a) {            \
    SIMT_LOCAL_NAMES                        \
    return expression;                      \
  }                                         \
  inline SIMT_T2 name2(SIMT_T2 a) { return {name(a.x), name(a.y)}; }
#define SIMT_BINARY(name, name2, expression) \
  inline SIMT_T name(SIMT_T a, SIMT_T b) {   \
    SIMT_LOCAL_NAMES                         \
    return expression;                       \
  }                                          \
  inline SIMT_T2 name2(SIMT_T2 a, SIMT_T2 b) { return {name(a.x, b.x), name(a.y, b.y)}; }
#define SIMT_TERNARY(name, name2, expression)        \
  inline SIMT_T name(SIMT_T a, SIMT_T b, SIMT_T c) { \
    SIMT_LOCAL_NAMES                                 \
    return expression;                               \
  }                                                  \
  inline SIMT_T2 name2(SIMT_T2 a, SIMT_T2 b, SIMT_T2 c) { return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)}; }

SIMT_UNARY(__hneg, __hneg2, from_bits(bits(a) ^ 0x8000))
SIMT_UNARY(__habs, __habs2, from_bits(bits(a) & 0x7fff))
SIMT_BINARY(__hadd, __hadd2, from(value(a) + value(b)))
SIMT_BINARY(__hsub, __hsub2, from(value(a) - value(b)))
SIMT_BINARY(__hmul, __hmul2, from(value(a) * value(b)))
SIMT_BINARY(__hdiv, __h2div, from(value(a) / value(b)))
SIMT_TERNARY(__hfma, __hfma2, from(::simt::fma_before_rounding(value(a), value(b), value(c))))
// Nothing here is ever fused into an __hfma, so the _rn forms, which promise just that, are the plain ones.
SIMT_BINARY(__hadd_rn, __hadd2_rn, __hadd(a, b))
SIMT_BINARY(__hsub_rn, __hsub2_rn, __hsub(a, b))
SIMT_BINARY(__hmul_rn, __hmul2_rn, __hmul(a, b))
SIMT_BINARY(__hadd_sat, __hadd2_sat, from(::simt::saturate(value(__hadd(a, b)))))
SIMT_BINARY(__hsub_sat, __hsub2_sat, from(::simt::saturate(value(__hsub(a, b)))))
SIMT_BINARY(__hmul_sat, __hmul2_sat, from(::simt::saturate(value(__hmul(a, b)))))
SIMT_TERNARY(__hfma_sat, __hfma2_sat, from(::simt::saturate(value(__hfma(a, b, c)))))

inline bool __hisnan(SIMT_T a) {
  return (::simt::SIMT_FORMAT::bits(a) & 0x7fff) > ::simt::SIMT_FORMAT::Code::kInfinity;
}
inline int __hisinf(SIMT_T a) {
  const unsigned short bits = ::simt::SIMT_FORMAT::bits(a);
  return (bits & 0x7fff) != ::simt::SIMT_FORMAT::Code::kInfinity ? 0 : bits & 0x8000 ? -1 : 1;
}
inline SIMT_T2 __hisnan2(SIMT_T2 a) {
  return {::simt::SIMT_FORMAT::from(__hisnan(a.x) ? 1.f : 0.f), ::simt::SIMT_FORMAT::from(__hisnan(a.y) ? 1.f : 0.f)};
}

// The number of a number and a NaN is the number; of two NaNs, the canonical NaN. Minus zero is less than zero: equal
// values differ at most in the sign, which & clears (for max) and | keeps (for min).
SIMT_BINARY(__hmax, __hmax2,
            value(a) > value(b) || (__hisnan(b) && !__hisnan(a))   ? a
            : value(a) < value(b) || (__hisnan(a) && !__hisnan(b)) ? b
            : __hisnan(a)                                          ? canonical_nan()
                                                                   : from_bits(bits(a) & bits(b)))
SIMT_BINARY(__hmin, __hmin2,
            value(a) < value(b) || (__hisnan(b) && !__hisnan(a))   ? a
            : value(a) > value(b) || (__hisnan(a) && !__hisnan(b)) ? b
            : __hisnan(a)                                          ? canonical_nan()
                                                                   : from_bits(bits(a) | bits(b)))
SIMT_BINARY(__hmax_nan, __hmax2_nan, __hisnan(a) || __hisnan(b) ? canonical_nan() : __hmax(a, b))
SIMT_BINARY(__hmin_nan, __hmin2_nan, __hisnan(a) || __hisnan(b) ? canonical_nan() : __hmin(a, b))
SIMT_TERNARY(__hfma_relu, __hfma2_relu, __hmax_nan(__hfma(a, b, c), from_bits(0)))

// Complex a * b + c, the real part in x; four roundings, in the GPU's order.
inline SIMT_T2 __hcmadd(SIMT_T2 a, SIMT_T2 b, SIMT_T2 c) {
  return {__hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

// --- Comparisons: of scalars; of pairs as 1.0 or 0.0, as a mask, and of both halves at once ------------------------
#define SIMT_COMPARISON(name, expression)                                                  \
  inline bool __h##name(SIMT_T a, SIMT_T b) {                                              \
    const float x = ::simt::SIMT_FORMAT::value(a), y = ::simt::SIMT_FORMAT::value(b);      \
    return expression;                                                                     \
  }                                                                                        \
  inline SIMT_T2 __h##name##2(SIMT_T2 a, SIMT_T2 b) {                                      \
    using ::simt::SIMT_FORMAT::from;                                                       \
    return {from(__h##name(a.x, b.x) ? 1.f : 0.f), from(__h##name(a.y, b.y) ? 1.f : 0.f)}; \
  }                                                                                        \
  inline unsigned int __h##name##2_mask(SIMT_T2 a, SIMT_T2 b) {                            \
    return (__h##name(a.x, b.x) ? 0xffffu : 0) | (__h##name(a.y, b.y) ? 0xffff0000u : 0);  \
  }                                                                                        \
  inline bool __hb##name##2(SIMT_T2 a, SIMT_T2 b) { return __h##name(a.x, b.x) && __h##name(a.y, b.y); }
// A NaN makes the ordered form false and the unordered form, whose name ends in u, true.
#define SIMT_COMPARISONS(name, expression) \
  SIMT_COMPARISON(name, expression)        \
  SIMT_COMPARISON(name##u, (x != x || y != y || expression))
SIMT_COMPARISONS(eq, (x == y))
SIMT_COMPARISONS(ne, (x < y || x > y))
SIMT_COMPARISONS(lt, (x < y))
SIMT_COMPARISONS(le, (x <= y))
SIMT_COMPARISONS(gt, (x > y))
SIMT_COMPARISONS(ge, (x >= y))
#undef SIMT_COMPARISONS
#undef SIMT_COMPARISON

// --- Functions -----------------------------------------------------------------------------------------------------
// The argument as a float, as every function below takes it, is exact.
#define SIMT_FUNCTION(name, expression) SIMT_UNARY(h##name, h2##name, from(expression))
SIMT_FUNCTION(ceil, std::ceil(value(a)))
SIMT_FUNCTION(floor, std::floor(value(a)))
SIMT_FUNCTION(trunc, std::trunc(value(a)))
SIMT_FUNCTION(rint, std::nearbyint(value(a)))
SIMT_FUNCTION(rcp, 1 / value(a))
SIMT_FUNCTION(sqrt, std::sqrt(value(a)))
SIMT_FUNCTION(rsqrt, 1 / std::sqrt(value(a)))
SIMT_FUNCTION(exp, std::exp(value(a)))
SIMT_FUNCTION(exp2, std::exp2(value(a)))
SIMT_FUNCTION(exp10, std::pow(10.f, value(a)))
SIMT_FUNCTION(log, std::log(value(a)))
SIMT_FUNCTION(log2, std::log2(value(a)))
SIMT_FUNCTION(log10, std::log10(value(a)))
SIMT_FUNCTION(sin, std::sin(value(a)))
SIMT_FUNCTION(cos, std::cos(value(a)))
SIMT_FUNCTION(tanh, std::tanh(value(a)))
SIMT_FUNCTION(tanh_approx, std::tanh(value(a)))
#undef SIMT_FUNCTION
#undef SIMT_UNARY
#undef SIMT_BINARY
#undef SIMT_TERNARY
#undef SIMT_LOCAL_NAMES

// --- Operators -----------------------------------------------------------------------------------------------------
#define SIMT_OPERATOR(type, op, function)                                          \
  inline type operator op(const type& a, const type& b) { return function(a, b); } \
  inline type& operator op##=(type& a, const type& b) { return a = function(a, b); }
#define SIMT_STEP(type, op, function, one)                           \
  inline type& operator op(type& a) { return a = function(a, one); } \
  inline type operator op(type& a, int) {                            \
    const type before = a;                                           \
    a = function(a, one);                                            \
    return before;                                                   \
  }
#define SIMT_TEST(type, op, function) \
  inline bool operator op(const type& a, const type& b) { return function(a, b); }
#if !defined(SIMT_NO_OPERATORS)
SIMT_OPERATOR(SIMT_T, +, __hadd)
SIMT_OPERATOR(SIMT_T, -, __hsub)
SIMT_OPERATOR(SIMT_T, *, __hmul)
SIMT_OPERATOR(SIMT_T, /, __hdiv)
SIMT_STEP(SIMT_T, ++, __hadd, ::simt::SIMT_FORMAT::from(1.f))
SIMT_STEP(SIMT_T, --, __hsub, ::simt::SIMT_FORMAT::from(1.f))
inline SIMT_T operator+(const SIMT_T& a) { return a; }
inline SIMT_T operator-(const SIMT_T& a) { return __hneg(a); }
SIMT_TEST(SIMT_T, ==, __heq)
SIMT_TEST(SIMT_T, !=, __hneu)
SIMT_TEST(SIMT_T, <, __hlt)
SIMT_TEST(SIMT_T, <=, __hle)
SIMT_TEST(SIMT_T, >, __hgt)
SIMT_TEST(SIMT_T, >=, __hge)
#endif
#if !defined(SIMT_NO_OPERATORS2)
SIMT_OPERATOR(SIMT_T2, +, __hadd2)
SIMT_OPERATOR(SIMT_T2, -, __hsub2)
SIMT_OPERATOR(SIMT_T2, *, __hmul2)
SIMT_OPERATOR(SIMT_T2, /, __h2div)
SIMT_STEP(SIMT_T2, ++, __hadd2, (SIMT_JOIN(__float2, SIMT_NAME2, _rn)(1)))
SIMT_STEP(SIMT_T2, --, __hsub2, (SIMT_JOIN(__float2, SIMT_NAME2, _rn)(1)))
inline SIMT_T2 operator+(const SIMT_T2& a) { return a; }
inline SIMT_T2 operator-(const SIMT_T2& a) { return __hneg2(a); }
SIMT_TEST(SIMT_T2, ==, __hbeq2)
SIMT_TEST(SIMT_T2, !=, __hbneu2)
SIMT_TEST(SIMT_T2, <, __hblt2)
SIMT_TEST(SIMT_T2, <=, __hble2)
SIMT_TEST(SIMT_T2, >, __hbgt2)
SIMT_TEST(SIMT_T2, >=, __hbge2)
#endif
#undef SIMT_OPERATOR
#undef SIMT_STEP
#undef SIMT_TEST

#undef SIMT_EACH_ROUNDING
#undef SIMT_JOIN
#undef SIMT_PASTE
#undef SIMT_T
#undef SIMT_T2
#undef SIMT_RAW
#undef SIMT_RAW2
#undef SIMT_OTHER
#undef SIMT_NAME
#undef SIMT_NAME2
#undef SIMT_FORMAT
#undef SIMT_NO_CONVERSIONS
#undef SIMT_NO_OPERATORS
#undef SIMT_NO_OPERATORS2
