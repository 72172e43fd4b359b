// cuRAND's device API: the generators XORWOW and Philox4x32-10 with cuRAND's states, seeds and sequences, and their
// distributions. George Marsaglia, Xorshift RNGs, 2003; Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
// 2011.
#pragma once
#include <math.h>

#include "curand.h"
#include "vector_types.h"

namespace simt {
// Advances the five words of XORWOW by count · 2^power steps.
void skip_xorwow(unsigned int v[5], unsigned long long count, int power);
unsigned int poisson(double lambda, double (*uniform)(void*), void* state);

constexpr float kOf32 = 2.3283064e-10f;                   // 2^-32
constexpr double kOf32Double = 2.3283064365386963e-10;    // 2^-32
constexpr double kOf53Double = 1.1102230246251565e-16;    // 2^-53
constexpr float kTurnOf32 = 2.3283064e-10f * 6.2831855f;  // 2 pi 2^-32

// What a state keeps of a pair of normal numbers until it is asked for the second one.
struct NormalPair {
  int boxmuller_flag, boxmuller_flag_double;
  float boxmuller_extra;
  double boxmuller_extra_double;
};
}  // namespace simt

struct curandStateXORWOW : simt::NormalPair {
  unsigned int d, v[5];
};
typedef struct curandStateXORWOW curandStateXORWOW_t;
typedef struct curandStateXORWOW curandState_t;
typedef struct curandStateXORWOW curandState;

struct curandStatePhilox4_32_10 : simt::NormalPair {
  uint4 ctr, output;
  uint2 key;
  unsigned int STATE;  // how many words of output are used up
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

// --- XORWOW --------------------------------------------------------------------------------------------------------
inline void skipahead(unsigned long long n, curandStateXORWOW* state) {
  simt::skip_xorwow(state->v, n, 0);
  state->d += 362437u * static_cast<unsigned int>(n);
}
inline void skipahead_sequence(unsigned long long n, curandStateXORWOW* state) { simt::skip_xorwow(state->v, n, 67); }

inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandStateXORWOW* state) {
  const unsigned int low = 1099087573u * (static_cast<unsigned int>(seed) ^ 0xaad26b49u);
  const unsigned int high = 2591861531u * (static_cast<unsigned int>(seed >> 32) ^ 0xf7dcefddu);
  *state = {};
  state->d = 6615241u + high + low;
  state->v[0] = 123456789u + low;
  state->v[1] = 362436069u ^ low;
  state->v[2] = 521288629u + high;
  state->v[3] = 88675123u ^ high;
  state->v[4] = 5783321u + low;
  skipahead_sequence(sequence, state);
  skipahead(offset, state);
}

inline unsigned int curand(curandStateXORWOW* state) {
  unsigned int* v = state->v;
  const unsigned int t = v[0] ^ (v[0] >> 2);
  v[0] = v[1], v[1] = v[2], v[2] = v[3], v[3] = v[4];
  v[4] = (v[4] ^ (v[4] << 4)) ^ (t ^ (t << 1));
  state->d += 362437;
  return v[4] + state->d;
}

// --- Philox --------------------------------------------------------------------------------------------------------
namespace simt {
inline uint4 philox(uint4 c, uint2 key) {
  for (int round = 0; round < 10; ++round, key.x += 0x9E3779B9u, key.y += 0xBB67AE85u) {
    const unsigned long long a = 0xD2511F53ull * c.x, b = 0xCD9E8D57ull * c.z;
    c = uint4{static_cast<unsigned int>(b >> 32) ^ c.y ^ key.x, static_cast<unsigned int>(b),
              static_cast<unsigned int>(a >> 32) ^ c.w ^ key.y, static_cast<unsigned int>(a)};
  }
  return c;
}
// Adds to the counter of 128 bits, from its lower or its upper half on.
inline void advance(curandStatePhilox4_32_10* state, unsigned long long low, unsigned long long high) {
  uint4& c = state->ctr;
  unsigned long long lower = c.x | static_cast<unsigned long long>(c.y) << 32;
  unsigned long long upper = c.z | static_cast<unsigned long long>(c.w) << 32;
  lower += low;
  upper += high + (lower < low ? 1 : 0);
  c = uint4{static_cast<unsigned int>(lower), static_cast<unsigned int>(lower >> 32), static_cast<unsigned int>(upper),
            static_cast<unsigned int>(upper >> 32)};
  state->output = philox(c, state->key);
}
inline unsigned int word(const uint4& four, unsigned int i) {
  return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}
}  // namespace simt

inline void skipahead(unsigned long long n, curandStatePhilox4_32_10* state) {
  const unsigned int used = state->STATE + static_cast<unsigned int>(n & 3);
  state->STATE = used & 3;
  simt::advance(state, n / 4 + used / 4, 0);
}
inline void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10* state) { simt::advance(state, 0, n); }

inline void curand_init(unsigned long long seed, unsigned long long sequence, unsigned long long offset,
                        curandStatePhilox4_32_10* state) {
  *state = {};
  state->key = uint2{static_cast<unsigned int>(seed), static_cast<unsigned int>(seed >> 32)};
  skipahead_sequence(sequence, state);
  skipahead(offset, state);
}

inline unsigned int curand(curandStatePhilox4_32_10* state) {
  const unsigned int given = simt::word(state->output, state->STATE++);
  if (state->STATE == 4) {
    simt::advance(state, 1, 0);
    state->STATE = 0;
  }
  return given;
}
inline uint4 curand4(curandStatePhilox4_32_10* state) {
  const uint4 before = state->output;
  simt::advance(state, 1, 0);
  const auto at = [&](unsigned int i) { return i < 4 ? simt::word(before, i) : simt::word(state->output, i - 4); };
  const unsigned int s = state->STATE;
  return uint4{at(s), at(s + 1), at(s + 2), at(s + 3)};
}

// --- Distributions: uniform in (0, 1], normal by Box and Muller, log-normal, Poisson ---------------------------------
namespace simt {
inline float uniform(unsigned int x) { return x * kOf32 + kOf32 / 2; }
inline double uniform_double(unsigned int x, unsigned int y) {
  return (x ^ static_cast<unsigned long long>(y) << 21) * kOf53Double + kOf53Double / 2;
}
inline float2 normal_pair(unsigned int x, unsigned int y) {
  const float angle = y * kTurnOf32 + kTurnOf32 / 2, size = sqrtf(-2 * logf(uniform(x)));
  return float2{size * sinf(angle), size * cosf(angle)};
}
inline double2 normal_pair_double(unsigned int x0, unsigned int x1, unsigned int y0, unsigned int y1) {
  const double angle = 6.283185307179586 * uniform_double(y0, y1), size = sqrt(-2 * log(uniform_double(x0, x1)));
  return double2{size * sin(angle), size * cos(angle)};
}
}  // namespace simt

template <class State>
float curand_uniform(State* state) {
  return simt::uniform(curand(state));
}
inline double curand_uniform_double(curandStateXORWOW* state) {
  const unsigned int x = curand(state);
  return simt::uniform_double(x, curand(state));
}
inline double curand_uniform_double(curandStatePhilox4_32_10* state) {
  return curand(state) * simt::kOf32Double + simt::kOf32Double;
}
template <class State>
float2 curand_normal2(State* state) {
  const unsigned int x = curand(state);
  return simt::normal_pair(x, curand(state));
}
template <class State>
float curand_normal(State* state) {
  state->boxmuller_flag = !state->boxmuller_flag;
  if (!state->boxmuller_flag) return state->boxmuller_extra;
  const float2 pair = curand_normal2(state);
  state->boxmuller_extra = pair.y;
  return pair.x;
}
template <class State>
double2 curand_normal2_double(State* state) {
  const unsigned int x0 = curand(state), x1 = curand(state), y0 = curand(state);
  return simt::normal_pair_double(x0, x1, y0, curand(state));
}
template <class State>
double curand_normal_double(State* state) {
  state->boxmuller_flag_double = !state->boxmuller_flag_double;
  if (!state->boxmuller_flag_double) return state->boxmuller_extra_double;
  const double2 pair = curand_normal2_double(state);
  state->boxmuller_extra_double = pair.y;
  return pair.x;
}
template <class State>
float curand_log_normal(State* state, float mean, float stddev) {
  return expf(mean + stddev * curand_normal(state));
}
template <class State>
double curand_log_normal_double(State* state, double mean, double stddev) {
  return exp(mean + stddev * curand_normal_double(state));
}
template <class State>
float2 curand_log_normal2(State* state, float mean, float stddev) {
  const float2 n = curand_normal2(state);
  return float2{expf(mean + stddev * n.x), expf(mean + stddev * n.y)};
}
template <class State>
double2 curand_log_normal2_double(State* state, double mean, double stddev) {
  const double2 n = curand_normal2_double(state);
  return double2{exp(mean + stddev * n.x), exp(mean + stddev * n.y)};
}
template <class State>
unsigned int curand_poisson(State* state, double lambda) {
  return simt::poisson(
      lambda, [](void* of) { return curand_uniform_double(static_cast<State*>(of)); }, state);
}

// Four of Philox at a time.
inline float4 curand_uniform4(curandStatePhilox4_32_10* state) {
  const uint4 x = curand4(state);
  return float4{simt::uniform(x.x), simt::uniform(x.y), simt::uniform(x.z), simt::uniform(x.w)};
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10* state) {
  const uint4 x = curand4(state);
  return double2{simt::uniform_double(x.x, x.y), simt::uniform_double(x.z, x.w)};
}
inline float4 curand_normal4(curandStatePhilox4_32_10* state) {
  const uint4 x = curand4(state);
  const float2 a = simt::normal_pair(x.x, x.y), b = simt::normal_pair(x.z, x.w);
  return float4{a.x, a.y, b.x, b.y};
}
inline float4 curand_log_normal4(curandStatePhilox4_32_10* state, float mean, float stddev) {
  const float4 n = curand_normal4(state);
  return float4{expf(mean + stddev * n.x), expf(mean + stddev * n.y), expf(mean + stddev * n.z),
                expf(mean + stddev * n.w)};
}
inline uint4 curand_poisson4(curandStatePhilox4_32_10* state, double lambda) {
  const unsigned int x = curand_poisson(state, lambda), y = curand_poisson(state, lambda);
  const unsigned int z = curand_poisson(state, lambda);
  return uint4{x, y, z, curand_poisson(state, lambda)};
}
