// What the header refuses, and with which sentence.
#include <q4_gemm/q4_gemm.cuh>

#include <cstdio>
#include <cstring>

#include "tests.h"

namespace q4_header_test {
namespace {

int failed = 0;

void expect(const char* got, const char* wanted) {
  if (std::strcmp(got ? got : "", wanted) == 0) return;
  std::printf("FAIL  arguments: got \"%s\", not \"%s\"\n", got ? got : "", wanted);
  ++failed;
}
void expect(cudaError_t got, cudaError_t wanted) { expect(cudaGetErrorName(got), cudaGetErrorName(wanted)); }

}  // namespace

// Pointers into one allocation that nothing is read from: every call is refused, or has nothing to do.
int arguments() {
  using namespace q4_gemm;
  constexpr int64_t m = 70, n = 3, k = 96;
  char* memory = nullptr;
  if (cudaMalloc(&memory, 1 << 20) != cudaSuccess) return 1;
  const Repacked w = {memory};
  const Blocks blocks = {memory};
  auto* x = reinterpret_cast<float*>(memory + (16 << 10));
  auto* y = reinterpret_cast<float*>(memory + (32 << 10));
  void* other = memory + (48 << 10);
  const float* none = nullptr;

  expect(explain(w, x, y, m, n, k), "");
  expect(explain(w, x, y, -1, n, k), "m is negative");
  expect(explain(w, x, y, (int64_t{1} << 31) + 1, n, k), "m is more than 2^31");
  expect(explain(w, x, y, m, -1, k), "n is negative");
  for (const int64_t bad : {0, 16, 33, 100, -32})
    expect(explain(w, x, y, m, n, bad), "k is not a multiple of 32, the numbers of a block, or less than 32");
  expect(explain(w, x, y, 1, 1, (int64_t{1} << 30) + 32), "k is more than 2^30");
  expect(explain(Repacked{nullptr}, x, y, m, n, k), "the weights are nullptr");
  expect(explain(Repacked{memory + 8}, x, y, m, n, k), "repacked weights are not aligned to 16 bytes");
  expect(explain(Blocks{memory + 2}, x, y, m, n, k), "");
  expect(explain(Blocks{memory + 1}, x, y, m, n, k), "blocks are not aligned to 2 bytes");
  expect(explain(w, none, y, m, n, k), "x is nullptr");
  expect(explain(w, Quantized{nullptr}, y, m, n, k), "x is nullptr");
  expect(explain(w, Quantized{x + 1}, y, m, n, k), "quantized x is not aligned to 16 bytes");
  expect(explain(w, x, none, m, n, k), "y is nullptr");
  expect(explain(w, x, x + n * k - 1, m, n, k), "y overlaps x");
  expect(explain(w, x, x + n * k, m, n, k), "");
  expect(explain(w, x, reinterpret_cast<float*>(memory + 16), m, n, k), "y overlaps the weights");
  expect(explain(blocks, x, y, m, n, k, y), "y overlaps bias");
  Options options;
  options.x_stride = k - 1;
  expect(explain(w, x, y, m, n, k, nullptr, options), "x_stride is less than k");
  expect(explain(w, Quantized{x}, y, m, n, k, nullptr, options), "");
  options = {};
  options.y_stride = m - 1;
  expect(explain(w, x, y, m, n, k, nullptr, options), "y_stride is less than m");
  expect(multiply(w, x, y, m, n, k, nullptr, options), cudaErrorInvalidValue);
  expect(multiply(w, x, y, m, n, k + 1), cudaErrorInvalidValue);
  expect(multiply(w, none, y, 0, n, k), cudaSuccess);
  expect(multiply(w, none, y, m, 0, k), cudaSuccess);

  constexpr int64_t columns = 17;
  char* const workspace = memory + (256 << 10);
  char* const end = workspace + workspace_size(m, columns, k);
  auto* float_end = reinterpret_cast<float*>(end);
  options = {};
  options.workspace = workspace;
  const auto with_workspace = [&](const auto& weights, const float* from, const float* to, const float* bias) {
    return explain(weights, from, to, m, columns, k, bias, options);
  };
  expect(with_workspace(Repacked{end}, x, y, none), "");
  expect(with_workspace(w, float_end, y, none), "");
  expect(with_workspace(w, x, float_end, none), "");
  expect(with_workspace(w, x, y, float_end), "");
  expect(with_workspace(Repacked{end - 16}, x, y, none), "workspace overlaps the weights");
  expect(with_workspace(Blocks{end - 2}, x, y, none), "workspace overlaps the weights");
  expect(with_workspace(w, float_end - 1, y, none), "workspace overlaps x");
  expect(with_workspace(w, x, float_end - 1, none), "workspace overlaps y");
  expect(with_workspace(w, x, y, float_end - 1), "workspace overlaps bias");
  options.workspace = workspace + 8;
  expect(with_workspace(w, x, y, none), "workspace is not aligned to 16 bytes");

  expect(explain_repack(memory, other, m, k), "");
  expect(explain_repack(memory, other, -1, k), "m is negative");
  expect(explain_repack(memory, other, m, 48), "k is not a multiple of 32, the numbers of a block, or less than 32");
  expect(explain_repack(memory, other, int64_t{1} << 20, int64_t{1} << 20),
         "m · k is more than 2^38 weights, more than a grid has threads for");
  expect(explain_repack(nullptr, other, m, k), "blocks is nullptr");
  expect(explain_repack(memory, nullptr, m, k), "packed is nullptr");
  expect(explain_repack(memory, memory + (48 << 10) + 8, m, k), "packed is not aligned to 16 bytes");
  expect(explain_repack(memory, memory + 16, m, k), "packed overlaps blocks");
  expect(repack(nullptr, other, m, k), cudaErrorInvalidValue);
  expect(repack(nullptr, nullptr, 0, k), cudaSuccess);
  void* too_much = nullptr;
  expect(cudaMalloc(&too_much, size_t{1} << 60), cudaErrorMemoryAllocation);
  expect(repack(memory, other, m, k), cudaSuccess);  // and not the error of the call before
  expect(cudaGetLastError(), cudaErrorMemoryAllocation);

  expect(explain_quantize(x, other, n, k), "");
  expect(explain_quantize(x, nullptr, n, k), "quantized is nullptr");
  expect(explain_quantize(x, memory + (48 << 10) + 2, n, k), "quantized is not aligned to 16 bytes");
  expect(explain_quantize(x, x + 4, n, k), "quantized overlaps x");
  expect(quantize(none, other, n, k), cudaErrorInvalidValue);
  expect(quantize(none, other, 0, k), cudaSuccess);

  auto* r = reinterpret_cast<__half*>(y);
  expect(explain_norm(x, nullptr, other, n, k), "");
  expect(explain_norm(x, r, r, x + n * k, other, n, k), "");
  expect(explain_norm(x, r, r + 2, nullptr, other, n, k), "residual_out overlaps residual, and is not the same tensor");
  expect(explain_norm(x, r, reinterpret_cast<__half*>(x), nullptr, other, n, k),
         "residual_out overlaps x, and is not the same tensor");
  expect(explain_norm(x, x + n * k, x, nullptr, other, n, k), "");
  expect(explain_norm(x, static_cast<__half*>(nullptr), r, nullptr, other, n, k), "residual is nullptr");
  expect(explain_norm(x, r, static_cast<__half*>(nullptr), nullptr, other, n, k), "residual_out is nullptr");
  expect(explain_norm(x, r, r, reinterpret_cast<float*>(r), other, n, k), "residual_out overlaps weight");
  expect(explain_norm(x, static_cast<float*>(other), other, n, k), "quantized overlaps weight");
  expect(explain_norm(x, nullptr, x, n, k), "quantized overlaps x");
  NormOptions norm;
  norm.eps = -1.0f;
  expect(explain_norm(x, nullptr, other, n, k, norm), "eps is negative or not finite");
  expect(rms_norm_quantize(x, nullptr, other, n, k, norm), cudaErrorInvalidValue);
  norm = {};
  norm.residual_out_stride = k - 1;
  expect(explain_norm(x, r, r, nullptr, other, n, k, norm), "residual_out_stride is less than k");

  cudaFree(memory);
  if (failed == 0) std::printf("pass  arguments\n");
  return failed ? 1 : 0;
}

}  // namespace q4_header_test
