// cuRAND: the jumps of XORWOW, Poisson's distribution, and the host API on the device API's generators.
#include "curand_kernel.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <mutex>
#include <vector>

#include "memory.h"
#include "state.h"

using namespace simt;

// --- XORWOW's jumps --------------------------------------------------------------------------------------------------
// A step is linear in the 160 bits of the state: a jump is the product with a power of its matrix.
namespace {

using Bits = std::array<unsigned, 5>;
using Step = std::array<Bits, 160>;  // what becomes of each bit

Bits advance_by(const Step& step, const Bits& v) {
  Bits result{};
  for (unsigned bit = 0; bit < 160; ++bit)
    if (v[bit / 32] >> bit % 32 & 1)
      for (unsigned word = 0; word < 5; ++word) result[word] ^= step[bit][word];
  return result;
}

// 2^power steps; each is the one before it twice.
const Step& steps(size_t power) {
  static std::mutex mutex;
  static std::deque<Step> known;
  const std::lock_guard<std::mutex> lock(mutex);
  if (known.empty())
    for (unsigned bit = 0; bit < 160; ++bit) {
      if (bit == 0) known.emplace_back();
      curandStateXORWOW state{};
      state.v[bit / 32] = 1u << bit % 32;
      curand(&state);
      for (unsigned word = 0; word < 5; ++word) known[0][bit][word] = state.v[word];
    }
  while (known.size() <= power) {
    const Step& half = known.back();
    Step twice;
    for (unsigned bit = 0; bit < 160; ++bit) twice[bit] = advance_by(half, half[bit]);
    known.push_back(twice);
  }
  return known[power];
}

}  // namespace

void simt::skip_xorwow(unsigned v[5], unsigned long long count, int power) {
  Bits bits;
  std::copy(v, v + 5, bits.begin());
  for (; count; count >>= 1, ++power)
    if (count & 1) bits = advance_by(steps(static_cast<size_t>(power)), bits);
  std::copy(bits.begin(), bits.end(), v);
}

// Products of uniform numbers for small means; else Hörmann's transformed rejection (PTRS, 1993).
unsigned simt::poisson(double lambda, double (*uniform)(void*), void* state) {
  if (lambda < 10) {
    const double limit = std::exp(-lambda);
    unsigned count = 0;
    for (double product = uniform(state); product > limit; product *= uniform(state)) ++count;
    return count;
  }
  const double b = 0.931 + 2.53 * std::sqrt(lambda), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = uniform(state) - 0.5, v = uniform(state), us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + lambda + 0.43);
    if (us >= 0.07 && v <= v_r) return static_cast<unsigned>(k);
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v * inverse_alpha / (a / (us * us) + b)) <= k * std::log(lambda) - lambda - std::lgamma(k + 1))
      return static_cast<unsigned>(k);
  }
}

// --- The host API ----------------------------------------------------------------------------------------------------

struct curandGenerator_st {
  static constexpr uint64_t kKnown = 0x63755261;
  uint64_t known = kKnown;
  curandRngType type;
  bool on_host;
  cudaStream_t stream = nullptr;
  unsigned long long seed = 0, offset = 0;

  // cuRAND's order of XORWOW: number n is number n / 4096 of sequence n % 4096. Philox has one sequence.
  std::vector<curandStateXORWOW> lanes;
  curandStatePhilox4_32_10 philox;
  unsigned long long given = 0;
  bool is_seeded = false;

  bool is_xorwow() const { return type == CURAND_RNG_PSEUDO_DEFAULT || type == CURAND_RNG_PSEUDO_XORWOW; }
  void start() {
    if (is_seeded) return;
    is_seeded = true;
    given = offset;
    lanes.resize(is_xorwow() ? 4096 : 0);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      const unsigned long long done = offset / 4096 + (lane < offset % 4096 ? 1 : 0);
      curand_init(seed, lane, done, &lanes[lane]);
    }
    if (!is_xorwow()) curand_init(seed, 0, offset, &philox);
  }
  template <class Draw>
  auto next(Draw draw) {
    return is_xorwow() ? draw(&lanes[given++ % 4096]) : draw(&philox);
  }
};

namespace {

bool is_known(curandGenerator_t generator) { return generator && generator->known == curandGenerator_st::kKnown; }

curandStatus_t status_of(cudaError_t error) {
  return error == cudaSuccess             ? CURAND_STATUS_SUCCESS
         : error == cudaErrorInvalidValue ? CURAND_STATUS_LAUNCH_FAILURE
                                          : CURAND_STATUS_PREEXISTING_FAILURE;
}

// fill(generator, output, n), when the stream gets there.
template <class T, class Fill>
curandStatus_t generate(curandGenerator_t generator, T* output, size_t n, Fill fill) {
  if (!is_known(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  const auto work = [=] {
    generator->start();
    fill(*generator, output, n);
    note_written(output, n * sizeof(T));
    return cudaSuccess;
  };
  return status_of(api([&]() -> cudaError_t {
    if (n && !stands_on(generator->on_host ? Side::host : Side::device, output, n * sizeof(T)))
      return cudaErrorInvalidValue;
    return generator->on_host ? work() : enqueue(generator->stream, work);
  }));
}

template <class T, class Draw>
curandStatus_t singly(curandGenerator_t generator, T* output, size_t n, Draw draw) {
  return generate(generator, output, n, [draw](curandGenerator_st& g, T* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = g.next(draw);
  });
}

template <class T, class Draw>
curandStatus_t in_pairs(curandGenerator_t generator, T* output, size_t n, Draw draw) {
  if (n % 2) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  return generate(generator, output, n, [draw](curandGenerator_st& g, T* to, size_t count) {
    for (size_t i = 0; i < count; i += 2) {
      const auto pair = g.next(draw);
      to[i] = pair.x, to[i + 1] = pair.y;
    }
  });
}

curandStatus_t create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  if (!generator) return CURAND_STATUS_INTERNAL_ERROR;
  switch (type) {
    case CURAND_RNG_PSEUDO_DEFAULT:
    case CURAND_RNG_PSEUDO_XORWOW:
    case CURAND_RNG_PSEUDO_MRG32K3A:
    case CURAND_RNG_PSEUDO_MTGP32:
    case CURAND_RNG_PSEUDO_MT19937:
    case CURAND_RNG_PSEUDO_PHILOX4_32_10:
      *generator = new curandGenerator_st;
      (*generator)->type = type;
      (*generator)->on_host = on_host;
      return CURAND_STATUS_SUCCESS;
    default:
      not_supported(
          "curandCreateGenerator: the CPU device has cuRAND's pseudorandom generators and no quasirandom one");
      return CURAND_STATUS_TYPE_ERROR;
  }
}

template <class Value>
curandStatus_t set(curandGenerator_t generator, Value curandGenerator_st::*member, Value value, bool starts_anew) {
  if (!is_known(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->*member = value;
  if (starts_anew) generator->is_seeded = false;
  return CURAND_STATUS_SUCCESS;
}

}  // namespace

curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  if (!is_known(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->known = 0;
  delete generator;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGetVersion(int* version) {
  if (!version) return CURAND_STATUS_OUT_OF_RANGE;
  *version = CURAND_VERSION;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  return set(generator, &curandGenerator_st::stream, stream, false);
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  return set(generator, &curandGenerator_st::seed, seed, true);
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  return set(generator, &curandGenerator_st::offset, offset, true);
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t order) {
  if (!is_known(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  return order == CURAND_ORDERING_QUASI_DEFAULT ? CURAND_STATUS_OUT_OF_RANGE : CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  if (!is_known(generator)) return CURAND_STATUS_NOT_INITIALIZED;
  generator->start();
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t curandGenerate(curandGenerator_t generator, unsigned* output, size_t n) {
  return singly(generator, output, n, [](auto* state) { return curand(state); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* output, size_t n) {
  return singly(generator, output, n, [](auto* state) { return curand_uniform(state); });
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* output, size_t n) {
  return singly(generator, output, n, [](auto* state) { return curand_uniform_double(state); });
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* output, size_t n, float mean, float stddev) {
  return in_pairs(generator, output, n, [=](auto* state) {
    const float2 pair = curand_normal2(state);
    return float2{mean + stddev * pair.x, mean + stddev * pair.y};
  });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* output, size_t n, double mean,
                                          double stddev) {
  return in_pairs(generator, output, n, [=](auto* state) {
    const double2 pair = curand_normal2_double(state);
    return double2{mean + stddev * pair.x, mean + stddev * pair.y};
  });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* output, size_t n, float mean, float stddev) {
  return in_pairs(generator, output, n, [=](auto* state) { return curand_log_normal2(state, mean, stddev); });
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* output, size_t n, double mean,
                                             double stddev) {
  return in_pairs(generator, output, n, [=](auto* state) { return curand_log_normal2_double(state, mean, stddev); });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned* output, size_t n, double lambda) {
  if (!(lambda > 0)) return CURAND_STATUS_OUT_OF_RANGE;
  return singly(generator, output, n, [=](auto* state) { return curand_poisson(state, lambda); });
}
