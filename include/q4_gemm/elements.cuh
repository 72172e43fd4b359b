// Numbers of the types that a caller may have, and tensor cores.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

namespace q4_gemm::detail {

template <class T>
constexpr bool is_element = std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(__half value) { return __half2float(value); }
__device__ inline float to_float(__nv_bfloat16 value) { return __bfloat162float(value); }
template <class T>
float to_float(T) = delete;  // a number of another type would become one of these

template <class T>
__device__ T from_float(float value) {
  static_assert(is_element<T>, "elements are float, __half or __nv_bfloat16");
  if constexpr (std::is_same_v<T, __half>)
    return __float2half_rn(value);
  else if constexpr (std::is_same_v<T, __nv_bfloat16>)
    return __float2bfloat16_rn(value);
  else
    return value;
}

__device__ inline float scale_of(unsigned bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// Eight neighbouring elements, still in their type. `aligned`: the first is at a multiple of 16 bytes.
template <class T>
struct Eight {
  alignas(16) T values[8];

  __device__ void load(const T* from, bool aligned) {
    if (aligned) {
      const uint4* words = reinterpret_cast<const uint4*>(from);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof values / 16); ++i) reinterpret_cast<uint4*>(values)[i] = words[i];
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) values[i] = from[i];
    }
  }
  __device__ void store(T* to, bool aligned) const {
    if (aligned) {
      uint4* words = reinterpret_cast<uint4*>(to);
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof values / 16); ++i)
        words[i] = reinterpret_cast<const uint4*>(values)[i];
    } else {
#pragma unroll
      for (int i = 0; i < 8; ++i) to[i] = values[i];
    }
  }
};

// --- Tensor cores ----------------------------------------------------------------------------------------------------

// The tensor cores' product of bytes, which has no name in CUDA C++, and the same in plain C++ for the repository's CPU
// device. A warp multiplies 16 rows of A with 8 columns of B, 32 signed bytes each, and adds to 16 x 8 sums. With
// g = lane / 4 and t = lane % 4, a lane has
//   a: four bytes t of rows g and g + 8, then four bytes 4 + t of the same rows (a row has eight times four bytes);
//   b: four bytes t of column g, then four bytes 4 + t;
//   sums: columns 2 t and 2 t + 1 of row g, then of row g + 8.
// All 32 lanes must call it. Source: PTX ISA 8.8, "Matrix Fragments for mma.m16n8k32".
__device__ inline void int8_mma(int (&sums)[4], const int (&a)[4], const int (&b)[2]) {
#ifdef __SIMT__
  const int lane = threadIdx.x % 32;
  for (int t = 0; t < 4; ++t)
    for (int half = 0; half < 2; ++half) {
      int rows[2], columns[2];
      for (int i = 0; i < 2; ++i) {
        rows[i] = __shfl_sync(0xffffffffu, a[2 * half + i], lane / 4 * 4 + t);
        columns[i] = __shfl_sync(0xffffffffu, b[half], (lane % 4 * 2 + i) * 4 + t);
      }
      for (int i = 0; i < 4; ++i) sums[i] = __dp4a(rows[i / 2], columns[i % 2], sums[i]);
    }
#elif __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace q4_gemm::detail
