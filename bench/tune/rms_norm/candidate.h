// The candidates of make tune: shapes of kernels for bfloat16 x, weight and y.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <vector>

#include "rms_norm/shape.cuh"

namespace tune {

using rms_norm::Access;
using rms_norm::Eviction;
using rms_norm::Shape;
using bf16 = __nv_bfloat16;

constexpr int kElements = 8;  // of a pack: 16 bytes
constexpr float kEps = 1e-6f;
constexpr int kPacks[] = {16, 32, 64, 128, 256, 512, 640, 1024, 2048, 4096, 8192};

// Contiguous rows on the device. The residual, nullptr for forward, is added in place.
struct Tensors {
  const bf16* x;
  bf16* residual;
  const bf16* weight;
  bf16* y;
  int64_t rows, cols;
};

struct Candidate {
  bool adds;
  Shape shape;
  int kernel_threads;  // shapes that agree in it, in vectors, parts and access are one kernel
  cudaError_t (*launch)(const Tensors& tensors, Eviction reads, bool dependent, cudaStream_t stream);
};

std::vector<Candidate>& candidates();

}  // namespace tune
