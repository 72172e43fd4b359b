#include "bench/tune/q4_gemm/reference.h"

#include <cuda_fp16.h>

#include <algorithm>
#include <q4_gemm/q4_gemm.cuh>

#include "common/cuda_check.h"

namespace tune {
namespace {

constexpr int kThreads = 128, kBlock = 32, kBlockBytes = 18;
constexpr int64_t kAllColumns = 32, kEndColumns = 16;  // so many are compared all, of more columns these at both ends

__device__ unsigned hash(int64_t i, unsigned key) {
  unsigned h = static_cast<unsigned>(i) * 2654435761u ^ static_cast<unsigned>(i >> 32) ^ key;
  for (int round = 0; round < 3; ++round) h ^= h << 13, h ^= h >> 17, h ^= h << 5;
  return h * 0x9e3779b1u;
}

// A thread has a block of weights. One scale in 64 is zero, so that none may be another's.
__global__ void fill_blocks(unsigned char* blocks, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i >= count) return;
  const unsigned random = hash(i, 1);
  const float scale = random % 64 == 0 ? 0.0f : (0.5f + static_cast<float>(random >> 8) * 0x1p-24f) / 64.0f;
  const unsigned short d = __half_as_ushort(__float2half_rn(random % 2 == 0 ? scale : -scale));
  unsigned char* to = blocks + i * kBlockBytes;
  to[0] = static_cast<unsigned char>(d & 255), to[1] = static_cast<unsigned char>(d >> 8);
  for (int byte = 0; byte < kBlock / 2; ++byte) to[2 + byte] = static_cast<unsigned char>(hash(i * 16 + byte, 2) >> 8);
}

__global__ void fill_x(float* x, int64_t count) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) x[i] = static_cast<float>(static_cast<int>(hash(i, 3))) * 0x1p-30f;
}

struct Numbers {
  double value[kBlock];
};

// x as a product takes it.
__device__ void numbers_of(const float* x, bool rounded, Numbers& to) {
  float most = 0.0f;
  for (int i = 0; i < kBlock; ++i) most = fmaxf(most, fabsf(x[i]));
  const float d = __fdiv_rn(most, 127.0f), inverse = d < 0x1p-126f ? 0.0f : __fdiv_rn(1.0f, d);
  const double scale = static_cast<double>(__half2float(__float2half_rn(d)));
  for (int i = 0; i < kBlock; ++i)
    to.value[i] = rounded ? static_cast<double>(__half2float(__float2half_rn(x[i])))
                          : scale * static_cast<double>(roundf(__fmul_rn(x[i], inverse)));
}

// A thread has an element of y; columns from `first` on are those from first + skipped on.
__global__ void multiply(const unsigned char* blocks, const float* x, double* sums, double* magnitudes, int64_t m,
                         int64_t columns, int64_t first, int64_t skipped, int64_t k, bool rounded) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, row = i % m, place = i / m;
  if (place >= columns) return;
  const int64_t column = place < first ? place : place + skipped;
  double sum = 0.0, magnitude = 0.0;
  for (int64_t b = 0; b < k / kBlock; ++b) {
    const unsigned char* block = blocks + (row * (k / kBlock) + b) * kBlockBytes;
    const float d = __half2float(__ushort_as_half(static_cast<unsigned short>(block[0] | block[1] << 8)));
    Numbers numbers;
    numbers_of(x + column * k + b * kBlock, rounded, numbers);
    for (int j = 0; j < kBlock; ++j) {
      const int q = (j < kBlock / 2 ? block[2 + j] & 15 : block[2 + j - kBlock / 2] >> 4) - 8;
      const float weight = d * static_cast<float>(q);  // exact: 11 bits times 4
      const double product = numbers.value[j] * (rounded ? static_cast<double>(__half2float(__float2half_rn(weight)))
                                                         : static_cast<double>(weight));
      sum += product;
      magnitude += fabs(product);
    }
  }
  sums[i] = sum, magnitudes[i] = magnitude;
}

__global__ void compare(const float* y, const double* sums, const double* magnitudes, int64_t m, int64_t columns,
                        int64_t first, int64_t skipped, double tolerance, int* wrong) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x, place = i / m;
  if (place >= columns) return;
  const double got = static_cast<double>(y[i + (place < first ? 0 : skipped * m)]);
  if (!(fabs(got - sums[i]) <= tolerance * magnitudes[i])) atomicAdd(wrong, 1);
}

unsigned grid_of(int64_t threads) { return static_cast<unsigned>((threads + kThreads - 1) / kThreads); }

}  // namespace

void fill(unsigned char* blocks, int64_t block_count, float* x, int64_t x_count) {
  fill_blocks<<<grid_of(block_count), kThreads>>>(blocks, block_count);
  fill_x<<<grid_of(x_count), kThreads>>>(x, x_count);
  CUDA_CHECK(cudaGetLastError());
}

int64_t packed_bytes(int64_t m, int64_t k) { return static_cast<int64_t>(q4_gemm::packed_size(m, k)); }
int64_t workspace_bytes(int64_t m, int64_t n, int64_t k) {
  return static_cast<int64_t>(q4_gemm::workspace_size(m, n, k));
}
void repack(const unsigned char* blocks, char* packed, int64_t m, int64_t k) {
  CUDA_CHECK(q4_gemm::repack(blocks, packed, m, k));
}

// Exact products are added up in float32, as in common/operators/q4_product.cpp. Of rounded ones, each step of 16 k
// rounds or cuts off a sum of 17 numbers; the parts of k are added up last.
Reference::Reference(const unsigned char* blocks, const float* x, int64_t m, int64_t n, int64_t k, bool rounded)
    : m_(m),
      first_(n <= kAllColumns ? n : kEndColumns),
      last_(n <= kAllColumns ? n : n - kEndColumns),
      n_(n),
      tolerance_(static_cast<double>(rounded ? k / 8 + 24 : k / kBlock + 11) * 0x1p-24),
      sums_(ladder::allocate<double>(m * std::min(n, kAllColumns))),
      magnitudes_(ladder::allocate<double>(m * std::min(n, kAllColumns))),
      wrong_(ladder::allocate<int>(1)) {
  const int64_t columns = n_ - (last_ - first_);
  multiply<<<grid_of(m * columns), kThreads>>>(blocks, x, sums_.get(), magnitudes_.get(), m, columns, first_,
                                               last_ - first_, k, rounded);
  CUDA_CHECK(cudaGetLastError());
}

int64_t Reference::wrong(const float* y) const {
  const int64_t columns = n_ - (last_ - first_);
  CUDA_CHECK(cudaMemset(wrong_.get(), 0, sizeof(int)));
  compare<<<grid_of(m_ * columns), kThreads>>>(y, sums_.get(), magnitudes_.get(), m_, columns, first_, last_ - first_,
                                               tolerance_, wrong_.get());
  CUDA_CHECK(cudaGetLastError());
  int wrong = 0;
  CUDA_CHECK(cudaMemcpy(&wrong, wrong_.get(), sizeof wrong, cudaMemcpyDeviceToHost));
  return wrong;
}

}  // namespace tune
