// The tensor cores' product of bytes, which has no name in CUDA C++, and the same in plain C++ for the CPU device.
// Source: PTX ISA 8.8, "Matrix Fragments for mma.m16n8k32", which says what each lane holds.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace ladder::q4_gemm {

// A warp multiplies 16 rows of A with 8 columns of B, 32 signed bytes each, and adds to 16 × 8 sums. With g = lane / 4
// and t = lane % 4, a lane has
//   a: bytes 4 t to 4 t + 3 of rows g and g + 8, then bytes 16 + 4 t to 16 + 4 t + 3 of the same rows;
//   b: bytes 4 t to 4 t + 3 of column g, then bytes 16 + 4 t to 16 + 4 t + 3;
//   sums: columns 2 t and 2 t + 1 of row g, then of row g + 8.
// All 32 lanes must call it. It needs sm_80.
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
#elif !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

}  // namespace ladder::q4_gemm
