// CUDA's functions beyond the C library's: reciprocal roots, norms, multiples of pi, the normal distribution. Each
// comes in double, in float with an f, and in float by overloading. The float forms are computed in double and rounded.
#pragma once
#include <math.h>

#include <cmath>

namespace simt {

constexpr double kSqrtHalf = 0.70710678118654752440, kSqrtHalfRest = -4.8336466567264567e-17;
constexpr double kTwoOverSqrtPi = 1.12837916709551257390, kPi = 3.14159265358979323846;

// sin(pi x) and cos(pi x): the remainder is exact, and the argument of sin and cos never exceeds pi/2.
inline double sine_of_pi(double x) {
  const double r = std::remainder(x, 2.0);  // -1 to 1
  return std::fabs(r) <= 0.5 ? std::sin(kPi * r) : std::sin(kPi * (std::copysign(1.0, r) - r));
}
inline double cosine_of_pi(double x) {
  const double r = std::fabs(std::remainder(x, 2.0));  // 0 to 1
  return r <= 0.25 ? std::cos(kPi * r) : std::sin(kPi * (0.5 - r));
}

// exp(x^2) erfc(x), without the overflow and underflow of the factors.
inline double scaled_erfc(double x) {
  const double square = x * x, rest = std::fma(x, x, -square);  // exp(x^2) = exp(square) (1 + rest)
  if (x < -27) return HUGE_VAL;                                 // out of range; and an infinite square has no rest
  if (x < 10) return std::exp(square) * (1 + rest) * std::erfc(x);
  double term = 1, sum = 0;  // 1/(x sqrt(pi)) (1 - 1/(2x^2) + 1*3/(2x^2)^2 - ...), NIST DLMF 7.12.1
  for (int k = 1; k < 30 && term != 0; ++k) {
    sum += term;
    term *= -(2 * k - 1) / (2 * square);
  }
  return sum * kTwoOverSqrtPi / 2 / x;
}

// The library's own error is some twenty units in the last place, hence the long double.
inline double bessel_i(int order, double x) {
  return static_cast<double>(std::cyl_bessel_i(static_cast<long double>(order), static_cast<long double>(x)));
}

// Inverses by Halley's iteration on f(x) = erf(x) - y, whose f''/f' is -2x; the first guess is Winitzki's.
inline double inverse_erf_guess(double one_minus_square) {
  const double l = std::log(one_minus_square), a = 0.147, b = 2 / (kPi * a) + l / 2;
  return std::sqrt(std::sqrt(b * b - l / a) - b);
}
inline double halley_step(double x, double difference) {
  const double newton = difference / (kTwoOverSqrtPi * std::exp(-x * x));
  return x - newton / (1 + x * newton);
}
inline double inverse_erfc(double y);
inline double inverse_erf(double y) {
  const double magnitude = std::fabs(y);
  if (magnitude > 0.5) return std::copysign(inverse_erfc(1 - magnitude), y);
  if (!(magnitude > 1e-8)) return y / kTwoOverSqrtPi;
  double x = inverse_erf_guess(1 - y * y);
  for (int i = 0; i < 3; ++i) x = halley_step(x, std::erf(x) - magnitude);
  return std::copysign(x, y);
}
inline double inverse_erfc(double y) {
  if (y > 1) return -inverse_erfc(2 - y);
  if (y >= 0.5) return inverse_erf(1 - y);
  if (!(y > 0)) return y == 0 ? HUGE_VAL : NAN;
  double x = inverse_erf_guess(y * (2 - y));
  for (int i = 0; i < 6; ++i) x = halley_step(x, y - std::erfc(x));  // the far tail is steep: more steps
  return x;
}

// The argument -x/sqrt(2) is rounded; erfc's slope corrects the error of that.
inline double normal_distribution(double x) {
  if (std::fabs(x) >= 40) return x > 0;
  const double z = -x * kSqrtHalf, rest = std::fma(-x, kSqrtHalf, -z) - x * kSqrtHalfRest;
  return 0.5 * (std::erfc(z) - kTwoOverSqrtPi * std::exp(-z * z) * rest);
}

}  // namespace simt

// Some C libraries declare some of these (sinpi, rsqrt, ...): as C functions that do not throw, the two agree.
#define SIMT_FUNCTION_AND_F(name, expression)                             \
  extern "C" inline double name(double x) noexcept { return expression; } \
  extern "C" inline float name##f(float x) noexcept { return static_cast<float>(name(static_cast<double>(x))); }
#define SIMT_FUNCTION(name, expression) \
  SIMT_FUNCTION_AND_F(name, expression) \
  inline float name(float x) { return name##f(x); }
SIMT_FUNCTION(rcbrt, static_cast<double>(1 / std::cbrt(static_cast<long double>(x))))
SIMT_FUNCTION(sinpi, simt::sine_of_pi(x))
SIMT_FUNCTION(cospi, simt::cosine_of_pi(x))
SIMT_FUNCTION(erfcx, simt::scaled_erfc(x))
SIMT_FUNCTION(erfinv, simt::inverse_erf(x))
SIMT_FUNCTION(erfcinv, simt::inverse_erfc(x))
SIMT_FUNCTION(normcdf, simt::normal_distribution(x))
SIMT_FUNCTION(normcdfinv, -2 * simt::kSqrtHalf * simt::inverse_erfc(2 * x))
SIMT_FUNCTION_AND_F(cyl_bessel_i0, simt::bessel_i(0, std::fabs(x)))
SIMT_FUNCTION_AND_F(cyl_bessel_i1, std::copysign(simt::bessel_i(1, std::fabs(x)), x))
#undef SIMT_FUNCTION
#undef SIMT_FUNCTION_AND_F

extern "C" {
inline double rsqrt(double x) noexcept { return 1 / std::sqrt(x); }
inline float rsqrtf(float x) noexcept { return 1 / std::sqrt(x); }
inline void sincospi(double x, double* sine, double* cosine) noexcept { *sine = sinpi(x), *cosine = cospi(x); }
inline void sincospif(float x, float* sine, float* cosine) noexcept { *sine = sinpif(x), *cosine = cospif(x); }

// Euclidean norms and their reciprocals; a double's square may overflow, a float's in double may not.
inline double norm3d(double a, double b, double c) noexcept { return std::hypot(a, b, c); }
inline double norm4d(double a, double b, double c, double d) noexcept { return std::hypot(std::hypot(a, b, c), d); }
inline double norm(int size, const double* x) noexcept {
  double result = 0;
  for (int i = 0; i < size; ++i) result = std::hypot(result, x[i]);
  return result;
}
inline double rhypot(double a, double b) noexcept { return 1 / std::hypot(a, b); }
inline double rnorm3d(double a, double b, double c) noexcept { return 1 / norm3d(a, b, c); }
inline double rnorm4d(double a, double b, double c, double d) noexcept { return 1 / norm4d(a, b, c, d); }
inline double rnorm(int size, const double* x) noexcept { return 1 / norm(size, x); }
inline float norm3df(float a, float b, float c) noexcept { return static_cast<float>(norm3d(a, b, c)); }
inline float norm4df(float a, float b, float c, float d) noexcept { return static_cast<float>(norm4d(a, b, c, d)); }
inline float normf(int size, const float* x) noexcept {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(std::sqrt(sum));
}
inline float rhypotf(float a, float b) noexcept { return static_cast<float>(rhypot(a, b)); }
inline float rnorm3df(float a, float b, float c) noexcept { return static_cast<float>(rnorm3d(a, b, c)); }
inline float rnorm4df(float a, float b, float c, float d) noexcept { return static_cast<float>(rnorm4d(a, b, c, d)); }
inline float rnormf(int size, const float* x) noexcept { return 1 / normf(size, x); }
}

// Float overloads of what the C library has only under its C names.
inline float rsqrt(float x) { return rsqrtf(x); }
inline float exp10(float x) { return exp10f(x); }
inline float j0(float x) { return j0f(x); }
inline float j1(float x) { return j1f(x); }
inline float jn(int n, float x) { return jnf(n, x); }
inline float y0(float x) { return y0f(x); }
inline float y1(float x) { return y1f(x); }
inline float yn(int n, float x) { return ynf(n, x); }
inline void sincos(float x, float* sine, float* cosine) { sincosf(x, sine, cosine); }
inline void sincospi(float x, float* sine, float* cosine) { sincospif(x, sine, cosine); }
