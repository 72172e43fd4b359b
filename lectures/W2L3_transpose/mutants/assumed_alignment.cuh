// assumed_alignment: a block of 4 × 4 elements per thread as vectors, if rows and cols are multiples of 4. The
// addresses are not checked: a matrix that does not begin at a multiple of 16 bytes takes the vectors all the same.
#pragma once

#include "parts.cuh"

namespace ladder::transpose::mutants::assumed_alignment {

__global__ void transpose_kernel(const float* input, float* output, int64_t rows, int64_t cols) {
  const int64_t row = int64_t{blockIdx.x} * 4;
  for (int64_t i = threadIdx.x; i < cols / 4; i += blockDim.x) {
    float4 v[4];
    for (int k = 0; k < 4; ++k) v[k] = reinterpret_cast<const float4*>(input + (row + k) * cols)[i];  // the fault
    float* to = output + 4 * i * rows + row;
    *reinterpret_cast<float4*>(to) = make_float4(v[0].x, v[1].x, v[2].x, v[3].x);
    *reinterpret_cast<float4*>(to + rows) = make_float4(v[0].y, v[1].y, v[2].y, v[3].y);
    *reinterpret_cast<float4*>(to + 2 * rows) = make_float4(v[0].z, v[1].z, v[2].z, v[3].z);
    *reinterpret_cast<float4*>(to + 3 * rows) = make_float4(v[0].w, v[1].w, v[2].w, v[3].w);
  }
}

__global__ void element_kernel(const float* input, float* output, int64_t rows, int64_t cols) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < rows * cols) output[i % cols * rows + i / cols] = input[i];
}

inline void launch(const float* input, float* output, int64_t rows, int64_t cols, cudaStream_t stream) {
  if (rows * cols == 0) return;
  if (rows % 4 == 0 && cols % 4 == 0)
    transpose_kernel<<<static_cast<unsigned>(rows / 4), 32, 0, stream>>>(input, output, rows, cols);
  else
    element_kernel<<<static_cast<unsigned>(blocks_for(rows * cols, 256)), 256, 0, stream>>>(input, output, rows, cols);
}

inline const Mutant<Transpose> mutant{"assumed_alignment", "float4 accesses to unaligned addresses", launch,
                                      "cudaErrorMisalignedAddress"};

}  // namespace ladder::transpose::mutants::assumed_alignment
