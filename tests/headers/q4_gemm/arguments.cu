// What the header refuses, and with which sentence.
#include <q4_gemm/q4_gemm.cuh>

#include <cstdio>
#include <cstring>

#include "tests.h"

namespace q4_header_test {
namespace {

using namespace q4_gemm;

int failed = 0;

void expect(const char* got, const char* wanted) {
  if (std::strcmp(got ? got : "", wanted) == 0) return;
  std::printf("FAIL  arguments: got \"%s\", not \"%s\"\n", got ? got : "", wanted);
  ++failed;
}
void expect(cudaError_t got, cudaError_t wanted) { expect(cudaGetErrorName(got), cudaGetErrorName(wanted)); }

// What does not fit 63 bits, or a grid.
static_assert(packed_size(0, 32) == 0 && packed_size(1, 0) == 0 && packed_size(-1, -1) == 0);
static_assert(quantized_size(1, 32) == 68 && quantized_size(-1, 32) == 0 && workspace_size(1, 17, 0) == 0);
static_assert(workspace_size(1, 1, 1 << 20) == 0 && workspace_size(0, 64, 64) == 0);
static_assert(workspace_size(1, 2, 4096) == 0 && workspace_size(1, 2, 4128) == quantized_size(2, 4128));
static_assert(workspace_size(1, 16, 512) == 0 && workspace_size(1, 17, 32) > 0);
static_assert(packed_size(INT64_MAX, INT64_MAX) == SIZE_MAX && packed_size(INT64_MAX, 1) == SIZE_MAX);
static_assert(quantized_size(int64_t{1} << 34, int64_t{1} << 30) == SIZE_MAX);
static_assert(workspace_size(1, INT64_MAX, 32) == SIZE_MAX && workspace_size(1, 16, INT64_MAX) == SIZE_MAX);

void sizes(Repacked w, float* x, float* y, void* other) {
  constexpr int64_t m = 64, k = 64, most = int64_t{1} << 30;
  expect(explain(w, x, y, m, INT32_MAX + int64_t{1}, k), "n is more than 2^31 - 1");
  expect(explain_quantize(x, other, int64_t{1} << 60, k), "n is more than 2^31 - 1");
  expect(quantize(x, other, int64_t{1} << 60, k), cudaErrorInvalidValue);
  expect(rms_norm_quantize(x, nullptr, other, (int64_t{1} << 32) + 1, k), cudaErrorInvalidValue);
  expect(explain(w, x, y, m, 1025, most), "n · k is more than 2^40");
  expect(explain(w, Quantized{x}, y, m, 1025, most), "n · k is more than 2^40");
  expect(explain_quantize(x, other, 1025, most), "n · k is more than 2^40");
  expect(explain(w, Quantized{x}, y, 2 * most, most, k), "y is too large for 64-bit addresses");

  const float* none = nullptr;
  Options options;
  options.x_stride = INT64_MAX;
  expect(explain(w, x, y, m, 3, k, nullptr, options), "x is too large for 64-bit addresses");
  expect(explain_quantize(x, other, 3, k, options), "x is too large for 64-bit addresses");
  expect(explain(w, x, y, m, 1, k, nullptr, options), "");
  options = {};
  options.y_stride = int64_t{1} << 62;
  expect(explain(w, x, y, m, 5, k, none, options), "y is too large for 64-bit addresses");
  NormOptions norm;
  norm.residual_stride = INT64_MAX;
  expect(explain_norm(x, y, y, nullptr, other, 2, k, norm), "residual is too large for 64-bit addresses");
  norm = {};
  norm.residual_out_stride = int64_t{1} << 58;
  expect(explain_norm(x, y, y, nullptr, other, 2, k, norm), "residual_out is too large for 64-bit addresses");
}

template <class T>
T* one_byte_on(T* tensor) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(tensor) + 1);
}

void elements(Repacked w, float* x, float* y, void* other) {
  constexpr int64_t m = 64, n = 3, k = 64;
  auto* half = reinterpret_cast<__half*>(y);
  expect(explain(w, one_byte_on(x), y, m, n, k), "x is not aligned to its element type");
  expect(explain(w, x, one_byte_on(half), m, n, k), "y is not aligned to its element type");
  expect(explain(w, x, y, m, n, k, one_byte_on(x)), "bias is not aligned to its element type");
  expect(multiply(w, x, y, m, n, k, one_byte_on(x)), cudaErrorInvalidValue);
  expect(explain_quantize(one_byte_on(half), other, n, k), "x is not aligned to its element type");
  expect(explain_norm(one_byte_on(x), nullptr, other, n, k), "x is not aligned to its element type");
  expect(explain_norm(x, one_byte_on(half), other, n, k), "weight is not aligned to its element type");
  expect(explain_norm(x, one_byte_on(half), half, nullptr, other, n, k), "residual is not aligned to its element type");
  expect(explain_norm(x, half, one_byte_on(half), nullptr, other, n, k),
         "residual_out is not aligned to its element type");
}

// Tensors side by side in one buffer with rows of 256 floats.
void between_columns(Repacked w, float* buffer, void* other) {
  constexpr int64_t m = 64, n = 4, k = 64, row = 256;
  Options options;
  options.x_stride = options.y_stride = row;
  const auto product = [&](int64_t x, int64_t y) {
    return explain(w, buffer + x, buffer + y, m, n, k, nullptr, options);
  };
  for (const int64_t y : {64, 128, 192}) expect(product(0, y), "");
  expect(product(128, 0), "");
  expect(product(192, row), "");  // y's columns begin in the row after x's
  for (const int64_t y : {0, 63, 193, 255}) expect(product(0, y), "y overlaps x");
  expect(product(0, n * row), "");
  options.y_stride = 2 * row;  // of float16, those of x
  expect(explain(w, buffer, reinterpret_cast<__half*>(buffer + 64), m, n, k, nullptr, options), "");
  expect(explain(w, buffer, reinterpret_cast<__half*>(buffer + 64) - 1, m, n, k, nullptr, options), "y overlaps x");
  expect(product(0, 64), "");  // y in every second row
  options.y_stride = row + 1;
  expect(product(0, 64), "y overlaps x");
  options.y_stride = row;
  const float* bias = buffer + 128;
  expect(explain(w, buffer, buffer + 64, m, n, k, bias, options), "");
  expect(explain(w, buffer, buffer + 64, m, n, k, bias - 1, options), "y overlaps bias");
  expect(explain(w, buffer, buffer + 64, m, n, k, bias + 128, options), "");
  expect(explain(w, buffer, buffer + 64, m, n, k, bias + 129, options), "y overlaps bias");

  NormOptions norm;
  norm.x_stride = norm.residual_stride = norm.residual_out_stride = row;
  float *const x = buffer, *const residual = buffer + 64, *const out = buffer + 128;
  expect(explain_norm(x, residual, residual, nullptr, other, n, k, norm), "");
  expect(explain_norm(x, residual, x, nullptr, other, n, k, norm), "");
  expect(explain_norm(x, residual, out, out + 64, other, n, k, norm), "");
  expect(explain_norm(x, residual, out, out + 63, other, n, k, norm), "residual_out overlaps weight");
  expect(explain_norm(x, out, residual - 1, nullptr, other, n, k, norm),
         "residual_out overlaps x, and is not the same tensor");
  expect(explain_norm(x, residual, out - 1, nullptr, other, n, k, norm),
         "residual_out overlaps residual, and is not the same tensor");
  norm.residual_out_stride = 2 * row;
  expect(explain_norm(x, residual, residual, nullptr, other, n, k, norm),
         "residual_out overlaps residual, and is not the same tensor");
}

}  // namespace

// Pointers into one allocation that nothing is read from: every call is refused, or has nothing to do.
int arguments() {
  constexpr int64_t m = 70, n = 3, k = 96;
  char* memory = nullptr;
  if (cudaMalloc(&memory, 1 << 20) != cudaSuccess || cudaMemset(memory, 0, 1 << 20) != cudaSuccess) return 1;
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
  for (const int64_t bad : {0, 16, -32}) {
    expect(explain(w, x, y, m, n, bad), "k is less than 32, the numbers of a block");
    expect(explain_repack(memory, other, m, bad), "k is less than 32, the numbers of a block");
    expect(explain_quantize(x, other, n, bad), "k is less than 32, the numbers of a block");
  }
  for (const int64_t bad : {33, 48, 100}) {
    expect(explain(w, x, y, m, n, bad), "k is not a multiple of 32, the numbers of a block");
    expect(explain_repack(memory, other, m, bad), "k is not a multiple of 32, the numbers of a block");
  }
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
  expect(explain_repack(memory, other, (int64_t{1} << 31) + 1, k), "m is more than 2^31");
  expect(explain_repack(memory, other, 1, (int64_t{1} << 30) + 32), "k is more than 2^30");
  expect(explain_repack(memory, nullptr, int64_t{1} << 21, int64_t{1} << 22), "packed is nullptr");
  expect(explain_repack(memory, nullptr, (int64_t{1} << 21) + 1, int64_t{1} << 22), "m · k is more than 2^43");
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

  sizes(w, x, y, other);
  elements(w, x, y, other);
  between_columns(w, x, other);
  cudaFree(memory);
  if (failed == 0) std::printf("pass  arguments\n");
  return failed ? 1 : 0;
}

}  // namespace q4_header_test
