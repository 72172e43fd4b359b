// Products with scales that are rounded to float16, against sums in float64 of the rounded numbers. They agree as
// closely as float32 sums may; the exact products are farther away.
#include <q4_gemm/q4_gemm.cuh>

#include <array>
#include <cmath>
#include <cstdio>
#include <vector>

#include "common/cuda_check.h"
#include "common/memory.h"
#include "common/operators/q4_blocks.h"
#include "common/random.h"
#include "common/types.h"
#include "on_device.h"
#include "tests.h"

namespace q4_header_test {
namespace {

using ladder::Float16;

double rounded(double value) { return Float16::value(Float16::from(static_cast<float>(value))); }

int product(int64_t m, int64_t n, int64_t k) {
  const int64_t row_blocks = k / ladder::kBlock;
  std::vector<float> weights(m * k), x(n * k);
  for (int64_t i = 0; i < m * k; ++i) weights[i] = ladder::uniform(ladder::hash32(1, i)) - 0.5f;
  for (int64_t i = 0; i < n * k; ++i) x[i] = ladder::uniform(ladder::hash32(2, i)) - 0.5f;
  std::vector<ladder::block_q4_0> blocks(m * row_blocks);
  for (int64_t i = 0; i < m * row_blocks; ++i) blocks[i] = ladder::quantized_q4_0(weights.data() + i * ladder::kBlock);

  const auto stored = on_device(blocks);
  const auto given = on_device(x);
  const auto packed = ladder::allocate(q4_gemm::packed_size(m, k));
  const auto workspace = ladder::allocate(q4_gemm::workspace_size(m, n, k));
  const auto y = ladder::allocate<float>(n * m);
  CUDA_CHECK(cudaMemset(y.get(), 0xff, sizeof(float) * n * m));
  CUDA_CHECK(q4_gemm::repack(stored.get(), packed.get(), m, k));
  q4_gemm::Options options;
  options.workspace = workspace.get();
  CUDA_CHECK(q4_gemm::multiply<q4_gemm::policies::H200Rounded>(q4_gemm::Repacked{packed.get()}, given.get(), y.get(), m,
                                                               n, k, nullptr, options));
  std::vector<float> got(n * m);
  CUDA_CHECK(cudaMemcpy(got.data(), y.get(), sizeof(float) * n * m, cudaMemcpyDeviceToHost));

  // Each step of 16 k rounds, or cuts off, a sum of 17 numbers to float32; the parts of k are added up last.
  const double tolerance = static_cast<double>(k / 8 + 24) * 0x1p-24;
  int64_t wrong = 0;
  for (int64_t i = 0; i < n * m; ++i) {
    const int64_t row = i % m, column = i / m;
    double sum = 0.0, magnitudes = 0.0;
    for (int64_t j = 0; j < k; ++j) {
      const ladder::block_q4_0& block = blocks[row * row_blocks + j / ladder::kBlock];
      const int q = ladder::weight_of(block, static_cast<int>(j % ladder::kBlock));
      const double term = rounded(Float16::value(block.d) * q) * rounded(x[column * k + j]);
      sum += term;
      magnitudes += std::abs(term);
    }
    if (!(std::abs(static_cast<double>(got[i]) - sum) <= tolerance * magnitudes)) ++wrong;
  }
  if (wrong > 0)
    std::printf("FAIL  rounded scales, %lld x %lld x %lld: %lld wrong\n", static_cast<long long>(m),
                static_cast<long long>(n), static_cast<long long>(k), static_cast<long long>(wrong));
  return wrong > 0 ? 1 : 0;
}

}  // namespace

int rounded_scales() {
  int failed = 0;
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{1, 17, 32}, {70, 33, 96}, {65, 65, 544}, {300, 129, 160}, {515, 40, 2080}})
    failed += product(m, n, k);
  if (failed == 0) std::printf("pass  rounded scales\n");
  return failed;
}

}  // namespace q4_header_test
