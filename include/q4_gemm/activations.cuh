// Activations: as the caller has them, or quantized to the numbers of llama.cpp's q8_1.
//
// A block is 32 neighbouring numbers of a column. d is the largest magnitude / 127, rounded to float16 when it is
// stored; a number becomes x · (1 / d), with the d that is not rounded yet, rounded to the nearest whole number, halves
// away from zero. A NaN or an infinity, or a magnitude above 127 · 65504, makes d, and so the results, NaN or infinite.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "elements.cuh"
#include "layout.cuh"

namespace q4_gemm {
namespace detail {

// Eight neighbouring numbers of a block, and its scale: what a lane computes of it.
struct EightNumbers {
  uint2 words;
  float d;
};

// All 32 lanes must call it. Four neighbouring lanes have a block.
__device__ inline EightNumbers quantized(const float (&x)[8]) {
  unsigned most = 0;  // bits of a magnitude: they have the order of the numbers, and NaN is the largest
#pragma unroll
  for (int i = 0; i < 8; ++i) most = max(most, __float_as_uint(x[i]) & 0x7fffffffu);
  most = max(most, __shfl_xor_sync(0xffffffffu, most, 1));
  most = max(most, __shfl_xor_sync(0xffffffffu, most, 2));
  const float d = __fdiv_rn(__uint_as_float(most), 127.0f);
  const float inverse = d < 0x1p-126f ? 0.0f : __fdiv_rn(1.0f, d);  // of a subnormal number it may be infinite
  unsigned numbers[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {  // as roundf: to the nearest, halves away from zero
    const float scaled = __fmul_rn(x[i], inverse);
    numbers[i] = static_cast<unsigned>(static_cast<int>(__fadd_rz(scaled, copysignf(0.5f, scaled))));
  }
  const auto word = [&](int i) {
    return __byte_perm(__byte_perm(numbers[i], numbers[i + 1], 0x0040),
                       __byte_perm(numbers[i + 2], numbers[i + 3], 0x0040), 0x5410);
  };
  return {make_uint2(word(0), word(4)), scale_of(__half_as_ushort(__float2half_rn(d)))};
}

// Columns of floats, halves or bfloat16, `stride` elements apart. `aligned`: every eighth element is at a multiple of
// 16 bytes.
template <class T>
struct Columns {
  const T* data = nullptr;
  int64_t stride = 0;
  bool aligned = false;
  using Loaded = Eight<T>;

  __device__ void load(Loaded& to, int64_t column, int64_t first) const {
    to.load(data + column * stride + first, aligned);
  }
  __device__ void store(const Loaded& from, int64_t column, int64_t first) const {
    from.store(const_cast<T*>(data) + column * stride + first, aligned);
  }
  __device__ static void clear(Loaded& loaded) {
#pragma unroll
    for (int i = 0; i < 8; ++i) loaded.values[i] = from_float<T>(0.0f);
  }
  __device__ static EightNumbers numbers_of(const Loaded& loaded) {
    float x[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = to_float(loaded.values[i]);
    return quantized(x);
  }
};

// What `quantize` writes: chunk after chunk, in it column after column, 64 bytes of numbers: for t from 0 to 3, numbers
// 8 t to 8 t + 7 of the chunk's first block, then of its second. Then all scales as float16, in the same order, two for
// each chunk of a column. What is padded is zero.
struct QuantizedColumns {
  const uint2* numbers = nullptr;  // eight each
  const unsigned short* scales = nullptr;
  int64_t n = 0, chunks = 0;
  using Loaded = EightNumbers;

  QuantizedColumns() = default;
  QuantizedColumns(const void* quantized, int64_t columns, int64_t k)
      : numbers(static_cast<const uint2*>(quantized)),
        scales(reinterpret_cast<const unsigned short*>(numbers + columns * chunks_of(k) * (kChunk / 8))),
        n(columns),
        chunks(chunks_of(k)) {}

  __device__ int64_t place_of(int64_t column, int64_t first) const { return first / kChunk * n + column; }
  __device__ int64_t number_of(int64_t column, int64_t first) const {
    return place_of(column, first) * (kChunk / 8) + first % kBlock / 8 * kChunkBlocks + first % kChunk / kBlock;
  }
  __device__ int64_t scale_of(int64_t column, int64_t first) const {
    return place_of(column, first) * kChunkBlocks + first % kChunk / kBlock;
  }
  __device__ void load(Loaded& to, int64_t column, int64_t first) const {
    to.words = numbers[number_of(column, first)];
    to.d = detail::scale_of(scales[scale_of(column, first)]);
  }
  __device__ static void clear(Loaded& loaded) { loaded = {}; }
  __device__ static EightNumbers numbers_of(const Loaded& loaded) { return loaded; }

  // Of a block, the thread with its first eight numbers writes the scale.
  __device__ void store(int64_t column, int64_t first, const EightNumbers& eight) const {
    const_cast<uint2*>(numbers)[number_of(column, first)] = eight.words;
    if (first % kBlock == 0)
      const_cast<unsigned short*>(scales)[scale_of(column, first)] = __half_as_ushort(__float2half_rn(eight.d));
  }
};

// A thread quantizes eight numbers.
template <class T>
__global__ void __launch_bounds__(128)
    quantize_kernel(Columns<T> x, QuantizedColumns to, int64_t n, int64_t k, bool dependent) {
  const int64_t i = int64_t{blockIdx.x} * blockDim.x + threadIdx.x, size = to.chunks * kChunk;
  const int64_t column = 8 * i / size, first = 8 * i % size;
  if (dependent) wait_for_previous_kernel();
  if (dependent) let_next_kernel_start();
  Eight<T> loaded;
  if (column < n && first < k)
    x.load(loaded, column, first);
  else
    x.clear(loaded);
  const EightNumbers eight = x.numbers_of(loaded);
  if (column < n) to.store(column, first, eight);
}

}  // namespace detail
}  // namespace q4_gemm
