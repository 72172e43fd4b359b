// The tensor cores' two instructions, which have no name in CUDA C++, and what they compute in plain C++ beside them.
// Sources: PTX ISA 8.8, "Warp Level Matrix Multiply-Accumulate Instructions" (mma, m16n8k16 and m16n8k32: which lane
// holds what) and "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (wgmma: the accumulators, the
// matrix descriptor, the order of fence, commit and wait).
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda_check.h"

namespace ladder::roofline {

using half_t = __half;

#ifdef __SIMT__

// What two words of numbers add to a sum.
template <class Number>
struct Words;
template <>
struct Words<half_t> {
  static __device__ float dot(uint32_t a, uint32_t b) {
    __half2 x, y;
    memcpy(&x, &a, 4), memcpy(&y, &b, 4);
    return __low2float(x) * __low2float(y) + __high2float(x) * __high2float(y);
  }
};
template <>
struct Words<int8_t> {
  static __device__ int32_t dot(uint32_t a, uint32_t b) { return __dp4a(static_cast<int>(a), static_cast<int>(b), 0); }
};

// Each lane gets the words of its two rows of A and its two columns of B from the lanes that hold them.
template <class Number, class Sum>
__device__ void mma(Sum (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  const int lane = threadIdx.x % 32;
  for (int holder = 0; holder < 4; ++holder)
    for (int k = 0; k < 2; ++k) {
      uint32_t row[2], column[2];
      for (int i = 0; i < 2; ++i) {
        row[i] = __shfl_sync(0xffffffffu, a[2 * k + i], lane / 4 * 4 + holder);
        column[i] = __shfl_sync(0xffffffffu, b[k], (lane % 4 * 2 + i) * 4 + holder);
      }
      for (int i = 0; i < 4; ++i) sums[i] += Words<Number>::dot(row[i / 2], column[i % 2]);
    }
}

// a and b are two neighbouring panels: of 64 rows and of 256 columns 16 bytes each, then the next 16 bytes of each.
template <class Number, class Sum>
__device__ void wgmma(Sum (&sums)[128], const uint4 (&a)[64], const uint4 (&b)[256]) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < 128; ++i) {
    const int row = warp * 16 + i / 2 % 2 * 8 + lane / 4, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    for (int panel = 0; panel < 2; ++panel) {
      const uint4 x = (&a)[panel][row], y = (&b)[panel][column];
      sums[i] += Words<Number>::dot(x.x, y.x) + Words<Number>::dot(x.y, y.y) + Words<Number>::dot(x.z, y.z) +
                 Words<Number>::dot(x.w, y.w);
    }
  }
}

inline bool has_wgmma() { return true; }
__device__ inline void show_to_tensor_cores() {}
__device__ inline void begin_wgmma() {}
__device__ inline void end_wgmma_but_one() {}
template <class Sum>
__device__ void end_wgmma(Sum (&)[128]) {}

#else

// A warp multiplies 16 rows of A with 8 columns of B, 8 words of each, and adds to 16 × 8 sums: 4 per lane. GPUs before
// Ampere lack these two forms.
template <class Number>
__device__ void mma(float (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
      "%3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}
template <class Number>
__device__ void mma(int32_t (&sums)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Whether the code that the GPU loads was compiled for sm_90a: sm_90 lacks wgmma.
#if !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
__device__ constexpr bool kHasWgmma = true;
#else
__device__ constexpr bool kHasWgmma = false;
#endif
__global__ void ask_for_wgmma_kernel(bool* has) { *has = kHasWgmma; }

inline bool has_wgmma() {
  bool has = false, *on_device = nullptr;
  CUDA_CHECK(cudaMalloc(&on_device, sizeof has));
  ask_for_wgmma_kernel<<<1, 1>>>(on_device);
  CUDA_CHECK(cudaMemcpy(&has, on_device, sizeof has, cudaMemcpyDeviceToHost));
  CUDA_CHECK(cudaFree(on_device));
  return has;
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where a matrix lies in shared memory: its address; how far the second 16 bytes of a row are from the first; how far
// a group of 8 rows, 16 bytes each, is from the one before. All in units of 16 bytes, no swizzle.
__device__ inline uint64_t descriptor(const void* panels, uint64_t rows) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(panels));
  return (address >> 4 & 0x3fff) | rows << 16 | uint64_t{8} << 32;
}

// The names of operands 0 to 127, and the 128 sums as such operands.
#define LADDER_TEN(t) \
  "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9, "
#define LADDER_128_NAMES                                                                                            \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, " LADDER_TEN(1) LADDER_TEN(2) LADDER_TEN(3) LADDER_TEN(4) LADDER_TEN(5) \
      LADDER_TEN(6) LADDER_TEN(7) LADDER_TEN(8) LADDER_TEN(9) LADDER_TEN(10)                                        \
          LADDER_TEN(11) "%120, %121, %122, %123, %124, %125, %126, %127}"
#define LADDER_4(kind, i) kind(sums[i]), kind(sums[i + 1]), kind(sums[i + 2]), kind(sums[i + 3])
#define LADDER_16(kind, i) LADDER_4(kind, i), LADDER_4(kind, i + 4), LADDER_4(kind, i + 8), LADDER_4(kind, i + 12)
#define LADDER_64(kind, i) LADDER_16(kind, i), LADDER_16(kind, i + 16), LADDER_16(kind, i + 32), LADDER_16(kind, i + 48)
#define LADDER_128(kind) LADDER_64(kind, 0), LADDER_64(kind, 64)

// Four warps multiply 64 rows of A with 256 columns of B, 8 words of each, and add to 64 × 256 sums: 128 per thread.
// It has only begun when the instruction is past.
template <class Number>
__device__ void wgmma(float (&sums)[128], const uint4 (&a)[64], const uint4 (&b)[256]) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " LADDER_128_NAMES ", %128, %129, 1, 1, 1, 0, 0;"
               : LADDER_128("+f")
               : "l"(descriptor(a, 64)), "l"(descriptor(b, 256)));
}
template <class Number>
__device__ void wgmma(int32_t (&sums)[128], const uint4 (&a)[64], const uint4 (&b)[256]) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 " LADDER_128_NAMES ", %128, %129, 1;"
               : LADDER_128("+r")
               : "l"(descriptor(a, 64)), "l"(descriptor(b, 256)));
}

// The tensor cores read shared memory by another path than threads write it.
__device__ inline void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// The compiler may keep no sum elsewhere while wgmma runs.
__device__ inline void pin(float (&sums)[128]) { asm volatile("" : LADDER_128("+f")::"memory"); }
__device__ inline void pin(int32_t (&sums)[128]) { asm volatile("" : LADDER_128("+r")::"memory"); }

// Registers may be used by wgmma from here on.
__device__ inline void begin_wgmma() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// All that has begun is one group; waits until no more than this group is at work.
__device__ inline void end_wgmma_but_one() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}
template <class Sum>
__device__ void end_wgmma(Sum (&sums)[128]) {
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  pin(sums);
}

#else  // never launched: has_wgmma() says no

template <class Number, class Sum>
__device__ void wgmma(Sum (&)[128], const uint4 (&)[64], const uint4 (&)[256]) {}
__device__ inline void show_to_tensor_cores() {}
__device__ inline void begin_wgmma() {}
__device__ inline void end_wgmma_but_one() {}
template <class Sum>
__device__ void end_wgmma(Sum (&)[128]) {}

#endif
#endif

}  // namespace ladder::roofline
