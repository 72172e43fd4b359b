// Experiment 3: the error that quantization itself makes, which no kernel can avoid, apart from the error that a kernel
// makes in its sums.
#include <algorithm>
#include <cmath>

#include "assignment2/q4_gemm/formats/quantize.cuh"
#include "common/memory.h"
#include "common/operators/q4_gemm.h"
#include "common/random.h"
#include "common/text.h"
#include "experiments.h"
#include "include/q4_gemm/layout.cuh"

namespace ladder::q4_gemm {
namespace {

constexpr int64_t kRows = 64, kColumns = 4;

// Box and Muller's method: normally distributed, with the mean 0 and the variance 1.
std::vector<float> normal_numbers(int64_t count, uint64_t seed) {
  std::vector<float> numbers(count);
  const uint64_t key = mix64(seed);
  for (int64_t i = 0; i < count; ++i) {
    const double radius = (static_cast<double>(hash32(key, 2 * i)) + 1.0) * 0x1p-32;
    const double angle = static_cast<double>(hash32(key, 2 * i + 1)) * 0x1p-32;
    numbers[i] = static_cast<float>(std::sqrt(-2.0 * std::log(radius)) * std::cos(2.0 * M_PI * angle));
  }
  return numbers;
}

template <class T>
DeviceMemory<T> on_device(const std::vector<T>& from) {
  DeviceMemory<T> to = allocate<T>(from.size());
  CUDA_CHECK(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
  return to;
}
template <class T>
std::vector<T> on_host(const T* from, int64_t count) {
  CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<T> to(count);
  CUDA_CHECK(cudaMemcpy(to.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost));
  return to;
}

// A scale times its whole numbers, each product rounded to float16.
template <class Block, class WholeNumber>
std::vector<float> rounded(const std::vector<Block>& blocks, WholeNumber whole_number) {
  std::vector<float> numbers;
  for (const Block& block : blocks)
    for (int i = 0; i < kBlock; ++i) {
      const auto exact = static_cast<float>(Float16::value(block.d) * whole_number(block, i));
      numbers.push_back(static_cast<float>(Float16::value(Float16::from(exact))));
    }
  return numbers;
}

double number(const block_q4_0& block, int i) { return Float16::value(block.d) * weight_of(block, i); }
double number(const block_q8_1& block, int i) { return Float16::value(block.d) * block.qs[i]; }
double number(const float& first, int i) { return static_cast<double>((&first)[i]); }

// In float64: rows of blocks of 32 numbers each, in any two of the three forms.
template <class W, class X>
std::vector<double> product(const std::vector<W>& w, const std::vector<X>& x, int64_t k) {
  const int64_t w_step = std::is_same_v<W, float> ? kBlock : 1, x_step = std::is_same_v<X, float> ? kBlock : 1;
  const int64_t blocks = k / kBlock;
  std::vector<double> y;
  for (int64_t column = 0; column < kColumns; ++column)
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0.0;
      for (int64_t b = 0; b < blocks; ++b)
        for (int i = 0; i < kBlock; ++i)
          sum += number(w[(row * blocks + b) * w_step], i) * number(x[(column * blocks + b) * x_step], i);
      y.push_back(sum);
    }
  return y;
}

// The same with the 8 of each weight subtracted through s, as llama.cpp does, but in float64.
std::vector<double> product_with_s(const std::vector<block_q4_0>& w, const std::vector<block_q8_1>& x, int64_t k) {
  const int64_t blocks = k / kBlock;
  std::vector<double> y;
  for (int64_t column = 0; column < kColumns; ++column)
    for (int64_t row = 0; row < kRows; ++row) {
      double sum = 0.0;
      for (int64_t b = 0; b < blocks; ++b) {
        const block_q4_0& weights = w[row * blocks + b];
        const block_q8_1& activations = x[column * blocks + b];
        int dot = 0;
        for (int i = 0; i < kBlock; ++i) dot += (weight_of(weights, i) + 8) * activations.qs[i];
        sum += Float16::value(weights.d) * (Float16::value(activations.d) * dot - 8.0 * Float16::value(activations.s));
      }
      y.push_back(sum);
    }
  return y;
}

// Both relative to the root mean square of what is right.
Cells error_cells(const std::vector<double>& got, const std::vector<double>& right) {
  double squares = 0.0, errors = 0.0, worst = 0.0;
  for (size_t i = 0; i < right.size(); ++i) {
    const double off = got[i] - right[i];
    squares += right[i] * right[i];
    errors += off * off;
    worst = std::max(worst, std::abs(off));
  }
  const double count = static_cast<double>(right.size()), size = std::sqrt(squares / count);
  return {text("%.2e", std::sqrt(errors / count) / size), text("%.2e", worst / size)};
}

}  // namespace

Table quantization(const Report& report) {
  Table table;
  table.title = text(
      "Experiment 3: errors of a product of normally distributed numbers, %lld x %lld outputs, relative to the root "
      "mean\nsquare of the outputs",
      static_cast<long long>(kRows), static_cast<long long>(kColumns));
  table.columns = {{"k", "k"},
                   {"what", "what"},
                   {"compared_with", "compared with"},
                   {"error", "root mean square"},
                   {"worst", "worst"}};
  table.left = 3;
  for (const int64_t k : {256, 4096, 14336}) {
    const std::vector<float> w = normal_numbers(kRows * k, report.options.seed);
    const std::vector<float> x = normal_numbers(kColumns * k, report.options.seed + 1);
    const int64_t w_blocks = kRows * k / kBlock, x_blocks = kColumns * k / kBlock;
    const DeviceMemory<block_q4_0> w_device = allocate<block_q4_0>(w_blocks);
    const DeviceMemory<block_q8_1> x_device = allocate<block_q8_1>(x_blocks);
    const DeviceMemory<> repacked = allocate(18 * w_blocks);
    const Repacked arrays = {reinterpret_cast<const uint4*>(repacked.get()),
                             reinterpret_cast<const uint16_t*>(repacked.get() + 16 * w_blocks)};
    const DeviceMemory<float> w_floats = on_device(w), x_floats = on_device(x);
    quantize(w_floats.get(), w_device.get(), w_blocks, cudaStreamPerThread);
    quantize(x_floats.get(), x_device.get(), x_blocks, cudaStreamPerThread);
    repack(w_device.get(), reinterpret_cast<uint4*>(repacked.get()), const_cast<uint16_t*>(arrays.d), w_blocks,
           cudaStreamPerThread);
    const DeviceMemory<> fragments = allocate(::q4_gemm::packed_size(kRows, k));
    CUDA_CHECK(::q4_gemm::repack(w_device.get(), fragments.get(), kRows, k, cudaStreamPerThread));
    const std::vector<block_q4_0> w_quantized = on_host(w_device.get(), w_blocks);
    const std::vector<block_q8_1> x_quantized = on_host(x_device.get(), x_blocks);

    const std::vector<double> right = product(w, x, k), exact = product(w_quantized, x_quantized, k);
    const auto add = [&](const char* what, const char* other, const Cells& errors) {
      append(table.rows.emplace_back(Cells{std::to_string(k), what, other}), {errors});
    };
    const char *floats = "float32 numbers", *integers = "quantized numbers, exact sums";
    add("x in q8_1", floats, error_cells(product(w, x_quantized, k), right));
    add("weights in q4_0", floats, error_cells(product(w_quantized, x, k), right));
    add("both", floats, error_cells(exact, right));
    add("sums of x from s, a float16", integers, error_cells(product_with_s(w_quantized, x_quantized, k), exact));
    const std::vector<float> w_rounded = rounded(w_quantized, weight_of);
    const std::vector<float> x_rounded =
        rounded(x_quantized, [](const block_q8_1& block, int i) { return block.qs[i]; });
    add("weights and x times their scales, in float16", integers, error_cells(product(w_rounded, x_rounded, k), exact));

    const DeviceMemory<float> y = allocate<float>(kRows * kColumns);
    const int64_t of_parts = Q4GemmRepacked::kSplits * kRows * kColumns;
    const int64_t of_x = Q4GemmFragments::kScratchOfX * 64 * ((k + 63) / 64);  // 64 columns, 64 k
    const DeviceMemory<float> scratch = allocate<float>(std::max(of_parts, of_x));
    std::vector<double> sums;
    double most = -1.0;
    for (const Result& result : report.results) {
      if (result.verdict != Verdict::pass) continue;
      const AnyStage& stage = *result.stage;
      char* const weights = stage.op == &Q4GemmFragments::get()  ? fragments.get()
                            : stage.op == &Q4GemmRepacked::get() ? repacked.get()
                                                                 : reinterpret_cast<char*>(w_device.get());
      void* const tensors[] = {y.get(), weights, x_device.get(), scratch.get()};
      stage({tensors, {{kRows, kColumns, k}}, nullptr}, cudaStreamPerThread);
      CUDA_CHECK(cudaGetLastError());
      const std::vector<float> got = on_host(y.get(), kRows * kColumns);
      double worst = 0.0;
      for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(got[i]) - exact[i]));
      if (worst <= most) continue;
      most = worst;
      sums.assign(got.begin(), got.end());
    }
    if (!sums.empty()) add("float32 sums of the least exact stage", integers, error_cells(sums, exact));
  }
  return table;
}

}  // namespace ladder::q4_gemm
