// cuRAND's sequences, against those of NVIDIA's curand_kernel.h 13.0 for the same seeds, sequences and offsets, and the
// moments of the host API's numbers.
#include "testing.h"

#include <curand.h>
#include <curand_kernel.h>

#include <algorithm>
#include <cmath>

struct Start {
  unsigned long long seed, sequence, offset;
};
struct Drawn {  // two numbers, one after a jump, one of a far sequence, and one of each distribution
  unsigned words[4];
  float uniform;
  double uniform_double;
  float normals[2];
  double normal;
};
constexpr Start kStarts[] = {{0, 0, 0}, {1234, 1, 7}, {0xfedcba9876543210u, 5000000000u, 12345678901u}};
constexpr Drawn kXorwow[] = {{{0xbd7f03b6u, 0x703e556du, 0x1a5283a7u, 0x8daf8b1fu},
                              0x1.829c9ap-2f,
                              0x1.2472eb66e7c12p-3,
                              {1.188535f, -0.05522624f},
                              0.9307121320854},
                             {{0xcca229b8u, 0x22e5097au, 0x0ceab7d6u, 0x1294ea37u},
                              0x1.b275b2p-1f,
                              0x1.10542abf59944p-4,
                              {-1.772498f, -1.250888f},
                              0.5654487591043},
                             {{0x750f1605u, 0xb35d8e94u, 0x185f45c1u, 0xe307e2cbu},
                              0x1.f88066p-2f,
                              0x1.3747b354bdb59p-2,
                              {-0.2650682f, 0.7873268f},
                              1.9598437609304}};
constexpr Drawn kPhilox[] = {{{0x6627e8d5u, 0xe169c58du, 0x770b429eu, 0x99ff9adau},
                              0x1.a1e8a2p-2f,
                              0x1.0b13d88p-4,
                              {-0.1720726f, -0.2268186f},
                              2.2058467759692},
                             {{0x86ff06afu, 0x2c03a11bu, 0xec677bf2u, 0xa6daf7d5u},
                              0x1.90954ap-2f,
                              0x1.f8c33c5cp-2,
                              {-0.7770244f, -0.2110625f},
                              -0.85743059084612},
                             {{0x4b9f0f6eu, 0x30d56015u, 0x6ed52f9eu, 0xc4aab67au},
                              0x1.422616p-1f,
                              0x1.a742e0cp-1,
                              {1.225241f, 0.9593909f},
                              -0.86381319985702}};

template <class State>
__global__ void draw(const Start* starts, Drawn* out) {
  State state;
  const Start start = starts[threadIdx.x];
  curand_init(start.seed, start.sequence, start.offset, &state);
  Drawn drawn;
  drawn.words[0] = curand(&state);
  drawn.words[1] = curand(&state);
  skipahead(1000003ull, &state);
  drawn.words[2] = curand(&state);
  skipahead_sequence(123456789ull, &state);
  drawn.words[3] = curand(&state);
  drawn.uniform = curand_uniform(&state);
  drawn.uniform_double = curand_uniform_double(&state);
  drawn.normals[0] = curand_normal(&state);
  drawn.normals[1] = curand_normal(&state);
  drawn.normal = curand_normal_double(&state);
  out[threadIdx.x] = drawn;
}

TEST_CASE_TEMPLATE("the sequences are cuRAND's", State, curandState, curandStatePhilox4_32_10_t) {
  const Device<Start> starts(std::vector<Start>(std::begin(kStarts), std::end(kStarts)));
  Device<Drawn> out(3);
  draw<State><<<1, 3>>>(starts.data, out.data);
  const std::vector<Drawn> got = out.host();
  for (size_t i = 0; i < 3; ++i) {
    const Drawn& expected = std::is_same_v<State, curandState> ? kXorwow[i] : kPhilox[i];
    CAPTURE(i);
    for (int word = 0; word < 4; ++word) CHECK(got[i].words[word] == expected.words[word]);
    CHECK(got[i].uniform == expected.uniform);
    CHECK(got[i].uniform_double == expected.uniform_double);
    for (int n = 0; n < 2; ++n) CHECK(got[i].normals[n] == doctest::Approx(expected.normals[n]).epsilon(1e-5));
    CHECK(got[i].normal == doctest::Approx(expected.normal).epsilon(1e-12));
  }
}

__global__ void fours(uint4* out) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, 3, 2, &state);  // the first two of a counter are used up
  curandStatePhilox4_32_10_t singly = state;
  out[0] = curand4(&state);
  for (unsigned* word = &out[1].x; word <= &out[1].w; ++word) *word = curand(&singly);
}

TEST_CASE("four at a time are the same numbers") {
  Device<uint4> out(2);
  fours<<<1, 1>>>(out.data);
  const auto got = out.host();
  CHECK(std::equal(&got[0].x, &got[0].x + 4, &got[1].x));
}

struct Moments {
  double mean, variance, third;
};
template <class T>
Moments moments(const std::vector<T>& numbers) {
  Moments of{};
  for (T x : numbers) of.mean += double(x) / double(numbers.size());
  for (T x : numbers) {
    const double away = double(x) - of.mean;
    of.variance += away * away / double(numbers.size()), of.third += away * away * away / double(numbers.size());
  }
  return of;
}

TEST_CASE("the host API's distributions") {
  constexpr size_t kCount = 100000;  // means lie within 5 of their standard errors, 1/sqrt(kCount) of a deviation
  for (curandRngType_t type : {CURAND_RNG_PSEUDO_DEFAULT, CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_MT19937}) {
    CAPTURE(int(type));
    curandGenerator_t generator;
    REQUIRE(curandCreateGenerator(&generator, type) == CURAND_STATUS_SUCCESS);
    REQUIRE(curandSetPseudoRandomGeneratorSeed(generator, 42) == CURAND_STATUS_SUCCESS);
    Device<float> floats(kCount);
    Device<double> doubles(kCount);
    Device<unsigned> integers(kCount);
    CHECK(curandGenerateUniform(generator, floats.data, kCount) == CURAND_STATUS_SUCCESS);
    const auto uniform = floats.host();
    CHECK(*std::min_element(uniform.begin(), uniform.end()) > 0);
    CHECK(*std::max_element(uniform.begin(), uniform.end()) <= 1);
    CHECK(std::fabs(moments(uniform).mean - 0.5) < 5 * std::sqrt(1.0 / 12 / kCount));
    CHECK(std::fabs(moments(uniform).variance - 1.0 / 12) < 0.001);
    CHECK(curandGenerateNormal(generator, floats.data, kCount, 3, 2) == CURAND_STATUS_SUCCESS);
    const Moments normal = moments(floats.host());
    CHECK(std::fabs(normal.mean - 3) < 5 * 2 / std::sqrt(kCount));
    CHECK(std::fabs(normal.variance - 4) < 0.1);
    CHECK(std::fabs(normal.third) < 0.4);
    CHECK(curandGenerateNormalDouble(generator, doubles.data, kCount, 0, 1) == CURAND_STATUS_SUCCESS);
    CHECK(std::fabs(moments(doubles.host()).variance - 1) < 0.025);
    CHECK(curandGenerateLogNormal(generator, floats.data, kCount, 0, 0.5f) == CURAND_STATUS_SUCCESS);
    CHECK(std::fabs(moments(floats.host()).mean - std::exp(0.125)) < 0.01);
    for (double lambda : {4.0, 100.0}) {  // one by products, one by rejection
      CHECK(curandGeneratePoisson(generator, integers.data, kCount, lambda) == CURAND_STATUS_SUCCESS);
      const Moments poisson = moments(integers.host());
      CHECK(std::fabs(poisson.mean - lambda) < 5 * std::sqrt(lambda / kCount));
      CHECK(std::fabs(poisson.variance - lambda) < 0.03 * lambda);
      CHECK(std::fabs(poisson.third - lambda) < (lambda < 10 ? 0.5 : 30));
    }
    CHECK(curandDestroyGenerator(generator) == CURAND_STATUS_SUCCESS);
    CHECK(curandDestroyGenerator(generator) != CURAND_STATUS_SUCCESS);
  }
}

TEST_CASE("the host API's order, seeds and refusals") {
  const auto generated = [](unsigned long long seed, unsigned long long offset) {
    curandGenerator_t generator;
    REQUIRE(curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_XORWOW) == CURAND_STATUS_SUCCESS);
    curandSetPseudoRandomGeneratorSeed(generator, seed);
    curandSetGeneratorOffset(generator, offset);
    std::vector<unsigned> numbers(5000);
    REQUIRE(curandGenerate(generator, numbers.data(), 100) == CURAND_STATUS_SUCCESS);
    REQUIRE(curandGenerate(generator, numbers.data() + 100, numbers.size() - 100) == CURAND_STATUS_SUCCESS);
    CHECK(curandGenerateNormal(generator, reinterpret_cast<float*>(numbers.data()), 3, 0, 1) ==
          CURAND_STATUS_LENGTH_NOT_MULTIPLE);
    curandDestroyGenerator(generator);
    return numbers;
  };
  const auto numbers = generated(1234, 0), later = generated(1234, 4100), other = generated(1235, 0);
  for (size_t n : {size_t(0), size_t(1), size_t(4095), size_t(4096), size_t(4999)}) {
    curandState state;
    curand_init(1234, n % 4096, n / 4096, &state);
    CHECK(numbers[n] == curand(&state));
  }
  CHECK(std::equal(numbers.begin() + 4100, numbers.end(), later.begin()));
  CHECK(numbers != other);

  curandGenerator_t generator;
  CHECK(contains(stderr_of([&] {
                   CHECK(curandCreateGenerator(&generator, CURAND_RNG_QUASI_SOBOL32) == CURAND_STATUS_TYPE_ERROR);
                 }),
                 "no quasirandom one"));
  REQUIRE(curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT) == CURAND_STATUS_SUCCESS);
  float on_host[2];
  CHECK(curandGenerateUniform(generator, on_host, 2) == CURAND_STATUS_LAUNCH_FAILURE);
  curandDestroyGenerator(generator);
  cudaGetLastError();
}
