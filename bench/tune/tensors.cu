#include "bench/tune/tensors.h"

#include "common/reference.h"
#include "common/text.h"

namespace tune {
namespace {

using Count = unsigned long long;
constexpr int kThreads = 256;

// Even in ±2, or around 1 in ±0.5: the same bits for the same seed on every device.
__global__ void fill(bf16* to, int64_t count, unsigned seed, bool around_one) {
  for (int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x; i < count; i += int64_t(gridDim.x) * kThreads) {
    uint64_t bits = (uint64_t(i) + 1) * 0x9e3779b97f4a7c15u + seed;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
    const float even = float(bits >> 40) * 0x1p-24f - 0.5f;
    to[i] = __float2bfloat16_rn(around_one ? 1.0f + even : 4.0f * even);
  }
}

// Elements of residual_out that are not x + residual, rounded.
__global__ void count_wrong_sums(const bf16* x, const bf16* residual, const bf16* residual_out, int64_t count,
                                 Count* wrong) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const bf16 sum = __float2bfloat16_rn(__bfloat162float(x[i]) + __bfloat162float(residual[i]));
  if (__bfloat16_as_ushort(sum) != __bfloat16_as_ushort(residual_out[i])) atomicAdd(wrong, Count{1});
}

// Elements of y that are further from the norm in float64 than `tolerance`, relative, allows; NaN is. A block a row.
__global__ void count_wrong(const bf16* input, const bf16* weight, const bf16* y, int64_t cols, double tolerance,
                            Count* wrong) {
  __shared__ double sums[kThreads];
  const int64_t first = blockIdx.x * cols;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const double value = __bfloat162float(input[first + i]);
    sum += value * value;
  }
  sums[threadIdx.x] = sum;
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (int(threadIdx.x) < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  const double rstd = 1.0 / sqrt(sums[0] / double(cols) + double(kEps));
  Count count = 0;
  for (int64_t i = threadIdx.x; i < cols; i += kThreads) {
    const double want = double(__bfloat162float(input[first + i])) * rstd * double(__bfloat162float(weight[i]));
    count += !(fabs(double(__bfloat162float(y[first + i])) - want) <= tolerance * fabs(want));
  }
  if (count > 0) atomicAdd(wrong, count);
}

int64_t floats(int64_t elements) { return (elements + 1) / 2; }

void fill(const ladder::DeviceBuffer& buffer, unsigned seed, bool around_one = false) {
  fill<<<1024, kThreads>>>(reinterpret_cast<bf16*>(buffer.data()), 2 * buffer.size(), seed, around_one);
  CUDA_CHECK(cudaGetLastError());
}

}  // namespace

Pool::Pool(const Problem& problem, int64_t copies)
    : problem_(problem),
      copies_(copies),
      x_(floats(copies * problem.elements())),
      y_(x_.size()),
      residual_(problem.adds ? x_.size() : 0),
      first_residual_(problem.adds ? floats(problem.elements()) : 0),
      weight_(floats(problem.cols)),
      wrong_(2 * sizeof(Count) / sizeof(float)) {
  fill(x_, 1);
  fill(residual_, 2);
  fill(first_residual_, 3);
  fill(weight_, 4, true);
}

bf16* Pool::at(const ladder::DeviceBuffer& buffer, int64_t copy) const {
  return reinterpret_cast<bf16*>(buffer.data()) + copy * problem_.elements();
}

Tensors Pool::tensors(int64_t copy) const {
  bf16* const residual = problem_.adds ? at(residual_, copy) : nullptr;
  return {at(x_, copy), residual, at(weight_, 0), at(y_, copy), problem_.rows, problem_.cols};
}

void Pool::prepare_first() {
  CUDA_CHECK(cudaMemset(y_.data(), 0xff, problem_.elements() * sizeof(bf16)));  // NaN
  if (problem_.adds)
    CUDA_CHECK(cudaMemcpy(residual_.data(), first_residual_.data(), problem_.elements() * sizeof(bf16),
                          cudaMemcpyDeviceToDevice));
  CUDA_CHECK(cudaDeviceSynchronize());
}

void Pool::prepare_all() {
  CUDA_CHECK(cudaMemset(y_.data(), 0xff, y_.size() * sizeof(float)));
  CUDA_CHECK(cudaDeviceSynchronize());
}

std::string Pool::check(int64_t copies, bool with_sums) {
  const int64_t count = copies * problem_.elements();
  // Rounding to bfloat16 adds 2^-8 to the error of a float32 kernel.
  const double tolerance = 0x1p-8 + ladder::tolerance(problem_.cols);
  Count* const wrong = reinterpret_cast<Count*>(wrong_.data());
  CUDA_CHECK(cudaMemset(wrong, 0, 2 * sizeof(Count)));
  count_wrong<<<unsigned(copies * problem_.rows), kThreads>>>(
      problem_.adds ? at(residual_, 0) : at(x_, 0), at(weight_, 0), at(y_, 0), problem_.cols, tolerance, wrong);
  CUDA_CHECK(cudaGetLastError());
  if (problem_.adds && with_sums) {
    count_wrong_sums<<<unsigned((count + kThreads - 1) / kThreads), kThreads>>>(at(x_, 0), at(first_residual_, 0),
                                                                                at(residual_, 0), count, wrong + 1);
    CUDA_CHECK(cudaGetLastError());
  }
  Count wrongs[2];
  CUDA_CHECK(cudaMemcpy(wrongs, wrong, sizeof wrongs, cudaMemcpyDeviceToHost));
  std::string result;
  const auto complain = [&](Count number, const char* what) {
    if (number > 0)
      result +=
          ladder::text("%s%llu of %lld %s", result.empty() ? "" : "; ", number, static_cast<long long>(count), what);
  };
  complain(wrongs[1], "sums are wrong");
  complain(wrongs[0], "elements of y are wrong or were never written");
  if (!y_.overrun().empty() || !residual_.overrun().empty() || !x_.overrun().empty())
    result += std::string(result.empty() ? "" : "; ") + "something beside the tensors was overwritten";
  return result;
}

}  // namespace tune
