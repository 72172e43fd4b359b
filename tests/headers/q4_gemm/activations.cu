// Repacking, quantization, and the norm that ends in quantized numbers, against the host.
#include <q4_gemm/q4_gemm.cuh>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/memory.h"
#include "common/operator.h"
#include "common/operators/q4_product.h"
#include "common/random.h"
#include "common/text.h"
#include "on_device.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using ladder::text;
int failed = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  std::printf("FAIL  %s\n", what.c_str());
  ++failed;
}

template <class T>
std::vector<T> on_host(const void* from, size_t count) {
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<T> to(count);
  CUDA_CHECK(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return to;
}

// The operator draws the same weights in both forms.
void repacking(int64_t m, int64_t k) {
  using Op = ladder::Q4Product;
  Op::Types types = {ladder::Type::float32, ladder::Type::float32};
  const ladder::Shape shape = {{m, 1, k}};
  std::vector<char> packed(q4_gemm::packed_size(m, k)), blocks(m * k / 32 * 18);
  Op::get(types).fill(shape, Op::kWeights, 1, packed.data());
  types.repacked = false;
  Op::get(types).fill(shape, Op::kWeights, 1, blocks.data());
  const auto from = on_device(blocks);
  const auto to = ladder::allocate(packed.size());
  CUDA_CHECK(cudaMemset(to.get(), 0xff, packed.size()));
  CUDA_CHECK(q4_gemm::repack(from.get(), to.get(), m, k));
  expect(on_host<char>(to.get(), packed.size()) == packed,
         text("repack of %lld x %lld", static_cast<long long>(m), static_cast<long long>(k)));
}

struct Numbers {
  std::vector<int8_t> numbers;  // with what is padded
  std::vector<float> scales;
};
// From the layout of QuantizedColumns to columns one after the other.
Numbers read(const void* quantized, int64_t n, int64_t k) {
  const int64_t chunks = (k + 63) / 64, size = chunks * 64;
  const auto bytes = on_host<int8_t>(quantized, q4_gemm::quantized_size(n, k));
  Numbers result = {std::vector<int8_t>(n * size), std::vector<float>(n * size / 32)};
  for (int64_t column = 0; column < n; ++column)
    for (int64_t i = 0; i < size; ++i) {
      const int64_t place = i / 64 * n + column, b = i / 32 % 2, t = i / 8 % 4;
      result.numbers[column * size + i] = bytes[place * 64 + 16 * t + 8 * b + i % 8];
      uint16_t bits;
      std::memcpy(&bits, bytes.data() + n * size + 2 * (2 * place + b), 2);
      result.scales[(column * size + i) / 32] = static_cast<float>(ladder::Float16::value(bits));
    }
  return result;
}

// A number of a column, or zero where it is padded.
std::vector<float> drawn(int64_t count, uint64_t seed) {
  std::vector<float> x(count);
  for (int64_t i = 0; i < count; ++i) x[i] = ladder::uniform(ladder::hash32(seed, i)) * static_cast<float>(1 + i % 7);
  return x;
}

void quantizing(int64_t n, int64_t k) {
  std::vector<float> x = drawn(n * k, 3);
  for (int64_t i = 0; i < 32; ++i) x[i] = 0.0f;                 // a block of zeros
  for (int64_t i = 32; i < 64 && i < k; ++i) x[i] = 0x1p-140f;  // and one of numbers whose inverse is infinite
  const auto from = on_device(x);
  const auto to = ladder::allocate(q4_gemm::quantized_size(n, k));
  CUDA_CHECK(q4_gemm::quantize(from.get(), to.get(), n, k));
  const Numbers got = read(to.get(), n, k);
  const int64_t size = (k + 63) / 64 * 64;
  int64_t wrong = 0;
  for (int64_t column = 0; column < n; ++column)
    for (int64_t b = 0; b < size / 32; ++b) {
      ladder::block_q8_1 right = {};
      if (b < k / 32) right = ladder::quantized_q8_1(x.data() + column * k + b * 32);
      const int64_t block = column * size / 32 + b;
      wrong += std::memcmp(got.numbers.data() + block * 32, right.qs, 32) != 0;
      wrong += static_cast<double>(got.scales[block]) != ladder::Float16::value(right.d);
    }
  expect(wrong == 0, text("quantize %lld x %lld: %lld blocks differ", static_cast<long long>(n),
                          static_cast<long long>(k), static_cast<long long>(wrong)));
}

// A NaN and an infinity in x show in y, in every row of their column and in no other.
void not_finite() {
  constexpr int64_t m = 20, n = 3, k = 128;
  std::vector<float> x = drawn(n * k, 5);
  x[40] = std::numeric_limits<float>::quiet_NaN();
  x[2 * k + 70] = -std::numeric_limits<float>::infinity();
  std::vector<uint16_t> blocks(m * k / 32 * 9, 0x3c79);
  const auto w = on_device(blocks);
  const auto from = on_device(x);
  const auto y = ladder::allocate<float>(m * n);
  CUDA_CHECK(q4_gemm::multiply(q4_gemm::Blocks{w.get()}, from.get(), y.get(), m, n, k));
  const auto got = on_host<float>(y.get(), m * n);
  for (int64_t i = 0; i < m * n; ++i)
    expect(std::isfinite(got[i]) == (i / m == 1),
           text("y[%lld] is %f", static_cast<long long>(i), static_cast<double>(got[i])));
}

// Scales below 2^-14 have fewer bits, so that a number is off by up to 127 · 2^-25, and no larger ones become zero.
void small_numbers() {
  constexpr float kZero = 127.0f * 0x1p-25f;
  std::vector<float> x;
  for (float value = 127.0f * 0x1p-14f; value > kZero / 4.0f; value *= 0.9f) x.insert(x.end(), 32, value);
  x.insert(x.end(), 32, kZero);
  x.insert(x.end(), 32, std::nextafterf(kZero, 1.0f));
  const int64_t k = static_cast<int64_t>(x.size());
  const auto from = on_device(x);
  const auto to = ladder::allocate(q4_gemm::quantized_size(1, k));
  CUDA_CHECK(q4_gemm::quantize(from.get(), to.get(), 1, k));
  const Numbers got = read(to.get(), 1, k);
  for (int64_t i = 0; i < k; ++i) {
    const float value = got.scales[i / 32] * static_cast<float>(got.numbers[i]);
    expect(std::abs(value - x[i]) <= kZero && (value == 0.0f) == (x[i] <= kZero),
           text("%g is quantized to %g", static_cast<double>(x[i]), static_cast<double>(value)));
  }

  std::vector<uint16_t> ones(9, 0x9999);
  ones[0] = 0x3c00;
  const auto w = on_device(ones);
  const auto y = ladder::allocate<float>(2);
  CUDA_CHECK(q4_gemm::multiply(q4_gemm::Blocks{w.get()}, from.get() + k - 64, y.get(), 1, 2, 32));
  const auto products = on_host<float>(y.get(), 2);
  expect(products[0] == 0.0f && products[1] == 32 * 127.0f * 0x1p-24f, "the smallest x with a product above zero");
}

// Up to 16 columns a workspace changes no bit. From 17 on another kernel may add up the same products in another order:
// each sum then has k / 32 + 11 roundings at most, as in common/operators/q4_product.cpp. A scale that is infinite is
// so either way, and only in its column.
void workspaces(int64_t n) {
  constexpr int64_t m = 70, k = 544;
  std::vector<uint16_t> blocks(m * k / 32 * 9, 0x3c00);
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 9 > 0) blocks[i] = static_cast<uint16_t>(ladder::hash32(11, i));
  std::vector<float> x = drawn(n * k, 12);
  x[0] = 8.4e6f;
  const auto stored = on_device(blocks);
  const auto from = on_device(x);
  const auto packed = ladder::allocate(q4_gemm::packed_size(m, k));
  const auto workspace = ladder::allocate(q4_gemm::workspace_size(m, n, k));
  const auto y = ladder::allocate<float>(n * m);
  CUDA_CHECK(q4_gemm::repack(stored.get(), packed.get(), m, k));
  std::vector<float> got[2];
  for (const bool given : {false, true}) {
    q4_gemm::Options options;
    options.workspace = given ? workspace.get() : nullptr;
    CUDA_CHECK(q4_gemm::multiply(q4_gemm::Repacked{packed.get()}, from.get(), y.get(), m, n, k, nullptr, options));
    got[given] = on_host<float>(y.get(), n * m);
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < n * m; ++i) {
    if (i < m) {
      wrong += std::isfinite(got[0][i]) || std::isfinite(got[1][i]);
      continue;
    }
    double magnitudes = 0.0;  // at most: no weight is above 8
    for (int64_t j = 0; j < k; ++j) magnitudes += 8.0 * std::abs(static_cast<double>(x[i / m * k + j]));
    const double limit = n < 17 ? 0.0 : 2.0 * static_cast<double>(k / 32 + 11) * 0x1p-24 * magnitudes;
    wrong += !(std::abs(static_cast<double>(got[0][i]) - static_cast<double>(got[1][i])) <= limit);
  }
  expect(wrong == 0, text("%lld columns, with and without a workspace: %lld differ", static_cast<long long>(n),
                          static_cast<long long>(wrong)));
}

// The numbers may be one off where a value lies next to the middle of two of them, and then 1 / rstd's last places
// decide; a scale may be off by its last place.
template <class T, class R>
void normalizing(int64_t n, int64_t k, bool adds, bool weighted) {
  using HostT = std::conditional_t<std::is_same_v<T, float>, ladder::Float32, ladder::Bfloat16>;
  using HostR = std::conditional_t<std::is_same_v<R, float>, ladder::Float32, ladder::Bfloat16>;
  const auto as = [](auto type, const std::vector<float>& from) {
    std::vector<typename decltype(type)::Stored> to;
    for (const float value : from) to.push_back(type.from(value));
    return to;
  };
  const int64_t stride = k + 8, size = (k + 63) / 64 * 64;
  const auto x = as(HostT(), drawn(n * stride, 7));
  const auto residual = as(HostR(), drawn(n * stride, 8));
  const auto weight = as(HostT(), drawn(k, 9));
  const auto x_device = on_device(x), weight_device = on_device(weight);
  const auto residual_device = on_device(residual);
  const auto to = ladder::allocate(q4_gemm::quantized_size(n, k));
  const auto* x_pointer = reinterpret_cast<const T*>(x_device.get());
  const auto* w = weighted ? reinterpret_cast<const T*>(weight_device.get()) : nullptr;
  auto* r = reinterpret_cast<R*>(residual_device.get());
  q4_gemm::NormOptions options;
  options.eps = 1e-3f;
  options.weight_offset = weighted ? 0.5f : 0.0f;
  options.x_stride = options.residual_stride = options.residual_out_stride = stride;
  options.dependent_launch = adds;
  CUDA_CHECK(adds ? q4_gemm::add_rms_norm_quantize(x_pointer, r, r, w, to.get(), n, k, options)
                  : q4_gemm::rms_norm_quantize(x_pointer, w, to.get(), n, k, options));
  const Numbers got = read(to.get(), n, k);
  const auto sums = on_host<typename HostR::Stored>(r, n * stride);
  int64_t wrong = 0, off = 0;
  for (int64_t column = 0; column < n; ++column) {
    std::vector<double> kept(size);
    double squares = 0.0;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t place = column * stride + i;
      float value = static_cast<float>(HostT::value(x[place]));
      if (adds) {
        const auto sum = HostR::from(value + static_cast<float>(HostR::value(residual[place])));
        wrong += std::memcmp(&sum, &sums[place], sizeof sum) != 0;
        value = static_cast<float>(HostR::value(sum));
      }
      kept[i] = static_cast<double>(value);
      squares += kept[i] * kept[i];
    }
    const double rstd = 1.0 / std::sqrt(squares / static_cast<double>(k) + 1e-3);
    for (int64_t i = 0; i < k; ++i) kept[i] *= rstd * (weighted ? 0.5 + HostT::value(weight[i]) : 1.0);
    for (int64_t b = 0; b < size / 32; ++b) {
      double most = 0.0;
      for (int i = 0; i < 32; ++i) most = std::max(most, std::abs(kept[b * 32 + i]));
      const int64_t block = column * size / 32 + b;
      const double d = most / 127.0;
      wrong += !(std::abs(static_cast<double>(got.scales[block]) - d) <= d * (0x1p-11 + 1e-5) + 0x1p-25);
      for (int i = 0; i < 32; ++i) {
        const double exact = d > 0.0 ? kept[b * 32 + i] / d : 0.0;
        const int number = got.numbers[block * 32 + i];
        wrong += !(std::abs(number - exact) <= 0.5 + 127.0 * 1e-5);
        off += number != static_cast<int>(std::lround(exact));
      }
    }
  }
  expect(wrong == 0 && off * 200 <= n * k,
         text("norm of %lld x %lld%s%s: %lld wrong, %lld off by one", static_cast<long long>(n),
              static_cast<long long>(k), adds ? ", residual" : "", weighted ? ", weight" : "",
              static_cast<long long>(wrong), static_cast<long long>(off)));
}

}  // namespace

int activations() {
  for (const int64_t m : {1, 16, 63, 65, 130})
    for (const int64_t k : {32, 64, 96, 352}) repacking(m, k);
  for (const int64_t n : {1, 3})
    for (const int64_t k : {32, 64, 96, 1056}) quantizing(n, k);
  not_finite();
  small_numbers();
  for (const int64_t n : {2, 16, 17}) workspaces(n);
  for (const int64_t k : {32, 96, 2048, 4096, 4128, 20032, 40032})
    for (const bool adds : {false, true}) {
      normalizing<float, float>(2, k, adds, true);
      normalizing<__nv_bfloat16, __nv_bfloat16>(k < 20000 ? 3 : 1, k, adds, false);
    }
  normalizing<__nv_bfloat16, float>(3, 352, true, true);
  if (failed == 0) std::printf("pass  repack, quantize, norms\n");
  return failed ? 1 : 0;
}

}  // namespace q4_header_test
