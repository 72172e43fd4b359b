// A column's bits: with Options::batch_invariant the same alone and beside others, by every kernel of a policy; of
// norms and of quantize() always.
#include <q4_gemm/q4_gemm.cuh>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"
#include "common/operator.h"
#include "common/operators/q4_product.h"
#include "common/random.h"
#include "common/text.h"
#include "on_device.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using namespace q4_gemm;
using ladder::text;
using Bits = std::vector<char>;
int failed = 0;

void expect(bool right, const std::string& what) {
  if (right) return;
  std::printf("FAIL  %s\n", what.c_str());
  ++failed;
}

template <class T>
Bits bits_of(const T* from, int64_t count) {
  CUDA_CHECK(cudaDeviceSynchronize());
  Bits bits(count * sizeof(T));
  CUDA_CHECK(cudaMemcpy(bits.data(), from, bits.size(), cudaMemcpyDeviceToHost));
  return bits;
}
bool begins_with(const Bits& all, const Bits& some) { return std::memcmp(all.data(), some.data(), some.size()) == 0; }

// Columns that are k elements apart, or one more, so that they are not aligned.
ladder::DeviceMemory<float> columns(int64_t n, int64_t k, int64_t stride) {
  std::vector<float> x(n * stride);
  for (int64_t i = 0; i < n * k; ++i) x[i / k * stride + i % k] = ladder::uniform(ladder::hash32(1, i)) - 0.5f;
  return on_device(x);
}

struct Weights {
  int64_t m, k;
  ladder::DeviceMemory<char> blocks;
  ladder::DeviceMemory<> packed;

  Weights(int64_t m, int64_t k) : m(m), k(k), packed(ladder::allocate(packed_size(m, k))) {
    std::vector<char> drawn(m * k / 32 * 18);
    ladder::Q4Product::Types types = {ladder::Type::float32, ladder::Type::float32};
    types.repacked = false;
    ladder::Q4Product::get(types).fill({{m, 1, k}}, ladder::Q4Product::kWeights, 1, drawn.data());
    blocks = on_device(drawn);
    CUDA_CHECK(repack(blocks.get(), packed.get(), m, k));
  }
};

// How many of the products of fewer columns have other bits than the same columns among `most`.
template <class Policy>
int count_different(const Weights& w, int64_t most, bool batch_invariant) {
  const ladder::DeviceMemory<float> x = columns(most, w.k, w.k), apart = columns(most, w.k, w.k + 1);
  const ladder::DeviceMemory<float> y = ladder::allocate<float>(most * w.m);
  const ladder::DeviceMemory<> numbers = ladder::allocate(quantized_size(most, w.k));
  const ladder::DeviceMemory<> workspace = ladder::allocate(workspace_size(w.m, most, w.k) + 16);
  const auto product = [&](const auto& weights, const auto& of_x, int64_t n, bool has_workspace, int64_t x_stride) {
    Options options;
    options.x_stride = x_stride;
    options.workspace = has_workspace ? workspace.get() : nullptr;
    options.batch_invariant = batch_invariant;
    CUDA_CHECK(cudaMemset(y.get(), 0xff, sizeof(float) * most * w.m));
    CUDA_CHECK(multiply<Policy>(weights, of_x, y.get(), w.m, n, w.k, nullptr, options));
    return bits_of(y.get(), n * w.m);
  };
  const Repacked packed{w.packed.get()};
  const Bits all = product(packed, x.get(), most, true, w.k);
  int different = 0;
  const auto compare = [&](const Bits& bits) { different += !begins_with(all, bits); };
  const std::vector<int64_t> every = {1, 2, 5, 9, 17}, some = {1, 17};
  for (const int64_t n : w.m < 100 ? every : some) {
    if (n > most) continue;
    compare(product(packed, x.get(), n, true, w.k));
    compare(product(packed, apart.get(), n, false, w.k + 1));
    CUDA_CHECK(quantize(x.get(), numbers.get(), n, w.k));
    compare(product(packed, Quantized{numbers.get()}, n, true, w.k));
  }
  compare(product(Blocks{w.blocks.get()}, x.get(), 2, false, w.k));
  const Bits last = product(packed, x.get() + (most - 1) * w.k, 1, true, w.k);
  different += std::memcmp(last.data(), all.data() + all.size() - last.size(), last.size()) != 0;
  return different;
}

template <class Policy>
void products(const char* policy, bool all_sizes) {
  // Around the sizes at which the table of an H200 changes the shape.
  const int64_t sizes[][3] = {{70, 1056, 33}, {17, 2112, 18}, {2049, 128, 2}, {7100, 64, 2}};
  int by_default = 0;
  for (const auto& [m, k, most] : sizes) {
    if (m > 100 && !all_sizes) continue;
    const Weights weights(m, k);

    const int different = count_different<Policy>(weights, most, true);
    expect(different == 0, text("%s, %lld x %lld: other bits in %d products of fewer columns", policy,
                                static_cast<long long>(m), static_cast<long long>(k), different));
    if (m < 100) by_default += count_different<Policy>(weights, most, false);
  }
  expect(by_default > 0, text("%s: no product differs without the option either, which shows nothing", policy));
}

// Norms and quantize(): numbers and scales of a column, which lie apart, alone and beside others.
Bits column_of(const void* quantized, int64_t n, int64_t k, int64_t column) {
  const int64_t chunks = (k + 63) / 64;
  const Bits all = bits_of(static_cast<const char*>(quantized), static_cast<int64_t>(quantized_size(n, k)));
  Bits bits;
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const char *numbers = all.data() + (chunk * n + column) * 64,
               *scales = all.data() + n * chunks * 64 + (chunk * n + column) * 4;
    bits.insert(bits.end(), numbers, numbers + 64);
    bits.insert(bits.end(), scales, scales + 4);
  }
  return bits;
}

void norms(int64_t k) {
  constexpr int64_t kColumns = 5;
  const ladder::DeviceMemory<float> x = columns(kColumns, k, k), apart = columns(kColumns, k, k + 1);
  const ladder::DeviceMemory<float> sums = ladder::allocate<float>(kColumns * k);
  const ladder::DeviceMemory<> all = ladder::allocate(quantized_size(kColumns, k)),
                               alone = ladder::allocate(quantized_size(1, k));
  // The function with n columns of x from `first` on.
  const auto check = [&](const char* name, const auto& function) {
    CUDA_CHECK(function(x.get(), k, all.get(), kColumns));
    for (int64_t i = 0; i < kColumns; ++i)
      for (const bool aligned : {true, false}) {
        const Bits together = column_of(all.get(), kColumns, k, i);
        const int64_t stride = aligned ? k : k + 1;
        CUDA_CHECK(function((aligned ? x : apart).get() + i * stride, stride, alone.get(), 1));
        expect(column_of(alone.get(), 1, k, 0) == together, text("%s, k = %lld", name, static_cast<long long>(k)));
      }
  };
  check("quantize", [&](const float* from, int64_t stride, void* to, int64_t n) {
    Options options;
    options.x_stride = stride;
    return quantize(from, to, n, k, options);
  });
  check("rms_norm_quantize", [&](const float* from, int64_t stride, void* to, int64_t n) {
    NormOptions options;
    options.x_stride = stride;
    return rms_norm_quantize(from, x.get(), to, n, k, options);
  });
  check("add_rms_norm_quantize", [&](const float* from, int64_t stride, void* to, int64_t n) {
    NormOptions options;
    options.x_stride = options.residual_stride = stride;
    return add_rms_norm_quantize(from, from, sums.get(), x.get(), to, n, k, options);
  });
}

}  // namespace

int batch_invariance() {
  products<DefaultPolicy>("the policy of an H200", true);
  products<policies::H200Rounded>("the rounded policy of an H200", false);
  for (const int64_t k : {32, 992, 2048, 2080, 4128, 16384}) norms(k);
  if (failed == 0) std::printf("pass  batch invariance\n");
  return failed;
}

}  // namespace q4_header_test
