// Thrust's linear congruential engines, whose discard(n) takes log n steps, and its distributions.
#pragma once
#include <cmath>
#include <cstdint>
#include <iostream>  // which programs rely on

namespace thrust {
namespace random {

template <class UInt, UInt a, UInt c, UInt m>
class linear_congruential_engine {
 public:
  using result_type = UInt;
  static constexpr UInt multiplier = a, increment = c, modulus = m;
  static constexpr UInt min = c == 0 ? 1 : 0, max = m - 1, default_seed = 1;
  explicit linear_congruential_engine(UInt seed = default_seed) { this->seed(seed); }
  void seed(UInt seed = default_seed) { x_ = c % m == 0 && seed % m == 0 ? 1 : seed % m; }
  UInt operator()() { return x_ = step(a, x_, c); }
  void discard(unsigned long long n) {
    UInt by = a, plus = c;  // 2^i steps at once: x -> by x + plus
    for (; n; n >>= 1) {
      if (n & 1) x_ = step(by, x_, plus);
      plus = step(by, plus, plus);
      by = step(by, by, 0);
    }
  }
  friend bool operator==(const linear_congruential_engine& p, const linear_congruential_engine& q) {
    return p.x_ == q.x_;
  }
  friend bool operator!=(const linear_congruential_engine& p, const linear_congruential_engine& q) {
    return p.x_ != q.x_;
  }

 private:
  static UInt step(UInt by, UInt x, UInt plus) {
    return static_cast<UInt>((static_cast<std::uint64_t>(by) * x + plus) % m);
  }
  UInt x_;
};
using minstd_rand0 = linear_congruential_engine<std::uint32_t, 16807, 0, 2147483647>;
using minstd_rand = linear_congruential_engine<std::uint32_t, 48271, 0, 2147483647>;
using default_random_engine = minstd_rand;

template <class Real = double>
class uniform_real_distribution {
 public:
  using result_type = Real;
  explicit uniform_real_distribution(Real a = 0, Real b = 1) : a_(a), b_(b) {}
  void reset() {}
  template <class Engine>
  Real operator()(Engine& engine) {
    const Real in_unit =
        static_cast<Real>(engine() - Engine::min) / (Real(1) + static_cast<Real>(Engine::max - Engine::min));
    return in_unit * (b_ - a_) + a_;
  }
  Real a() const { return a_; }
  Real b() const { return b_; }

 private:
  Real a_, b_;
};

template <class Int = int>
class uniform_int_distribution {
 public:
  using result_type = Int;
  explicit uniform_int_distribution(Int a = 0,
                                    Int b = static_cast<Int>(static_cast<std::uint64_t>(-1) >> (65 - 8 * sizeof(Int))))
      : a_(a), b_(b) {}
  void reset() {}
  template <class Engine>
  Int operator()(Engine& engine) {
    return static_cast<Int>(
        uniform_real_distribution<double>(static_cast<double>(a_), static_cast<double>(b_) + 1)(engine));
  }
  Int a() const { return a_; }
  Int b() const { return b_; }

 private:
  Int a_, b_;
};

template <class Real = double>
class normal_distribution {  // by Box and Muller
 public:
  using result_type = Real;
  explicit normal_distribution(Real mean = 0, Real stddev = 1) : mean_(mean), stddev_(stddev) {}
  void reset() {}
  template <class Engine>
  Real operator()(Engine& engine) {
    uniform_real_distribution<double> uniform;
    const double size = ::sqrt(-2 * ::log(1 - uniform(engine))), angle = 6.283185307179586 * uniform(engine);
    return static_cast<Real>(mean_ + stddev_ * size * ::cos(angle));
  }
  Real mean() const { return mean_; }
  Real stddev() const { return stddev_; }

 private:
  Real mean_, stddev_;
};

}  // namespace random

using random::default_random_engine;
using random::linear_congruential_engine;
using random::minstd_rand;
using random::minstd_rand0;
using random::normal_distribution;
using random::uniform_int_distribution;
using random::uniform_real_distribution;

}  // namespace thrust
