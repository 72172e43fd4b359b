// Hopper's product of float16 by the tensor cores, which has no name in CUDA C++, and the same in plain C++ for the CPU
// device. Source: PTX ISA 8.8, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "common/cuda_check.h"

namespace ladder::q4_gemm {

// wgmma belongs to sm_90a: code for sm_90, and for every other GPU, lacks it. A kernel that needs it is compiled there
// for no more threads than a warp, __launch_bounds__(kHasWgmma ? kThreads : 32), and that is how the host knows.
#if defined(__SIMT__) || !defined(__CUDA_ARCH__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool kHasWgmma = true;
#else
constexpr bool kHasWgmma = false;
#endif
template <class Kernel>
const char* refuses_without_wgmma(Kernel kernel) {
  cudaFuncAttributes attributes;
  CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.maxThreadsPerBlock > 32 ? nullptr
                                            : "wgmma is an instruction of compute capability 9.0 alone; use such a "
                                              "GPU, and build with ARCHS=90a";
}

__device__ inline __half2 half2_of(uint32_t bits) {
  __half2 two;
  memcpy(&two, &bits, sizeof two);
  return two;
}
__device__ inline uint32_t bits_of(__half2 two) {
  uint32_t bits;
  memcpy(&bits, &two, sizeof bits);
  return bits;
}

// Four warps, of which the first has a number that is a multiple of 4, multiply 64 rows of A, which are in registers,
// with N columns of B, which are in shared memory, 16 float16 each. They add to 64 × N sums, or set them if not `add`.
// With g = lane / 4 and t = lane % 4, a lane of the w-th of the four warps has
//   a: numbers 2 t and 2 t + 1 of rows 16 w + g and 16 w + g + 8, then numbers 8 + 2 t and 9 + 2 t of the same rows;
//   sums: columns 8 j + 2 t and 8 j + 2 t + 1 of row 16 w + g, then of row 16 w + g + 8, for each j.
// B is two panels: the first 8 numbers of each column, 16 bytes, then the other 8 of each.
//
// The tensor cores begin, and the warps go on: before it, wgmma_begin() after the last change of a and sums; after it,
// wgmma_end(sums) before the next change or use of them. They read shared memory by a path of their own, so that
// what threads have written there needs fence_proxy_async_shared_cta() by these threads and then a barrier.
#ifdef __SIMT__
template <int N>
__device__ void half_wgmma(float (&sums)[N / 2], const uint32_t (&a)[4], const uint4* panels, bool add) {
  const int lane = threadIdx.x % 32;
  const auto* words = reinterpret_cast<const uint32_t*>(panels);
  for (int i = 0; i < N / 2 && !add; ++i) sums[i] = 0.0f;
  for (int t = 0; t < 4; ++t)
    for (int half = 0; half < 2; ++half) {
      float2 rows[2];
      for (int i = 0; i < 2; ++i)
        rows[i] = __half22float2(half2_of(__shfl_sync(0xffffffffu, a[2 * half + i], lane / 4 * 4 + t)));
      for (int i = 0; i < N / 2; ++i) {
        const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        const float2 x = __half22float2(half2_of(words[(half * N + column) * 4 + t])), w = rows[i / 2 % 2];
        sums[i] += w.x * x.x + w.y * x.y;
      }
    }
}
__device__ inline void wgmma_begin() {}
template <int count>
__device__ void wgmma_end(float (&)[count]) {}

#else
__device__ inline void wgmma_begin() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
template <int count>
__device__ void wgmma_end(float (&sums)[count]) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
  for (int i = 0; i < count; ++i)
    asm volatile("" : "+f"(sums[i])::"memory");  // no use of them moves to before the wait
#endif
}

#define LADDER_FOUR(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define LADDER_INPUTS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{add})

template <int N>
__device__ void half_wgmma(float (&sums)[N / 2], const uint32_t (&a)[4], const uint4* panels, bool add) {
  static_assert(N == 16 || N == 64, "instructions for 16 and for 64 columns are spelled out here");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  // The address; how far the second panel is from the first; and how far eight columns are from the eight before: in
  // units of 16 bytes. No swizzle.
  const uint64_t b = (__cvta_generic_to_shared(panels) >> 4 & 0x3fff) | uint64_t{N} << 16 | uint64_t{8} << 32;
  if constexpr (N == 16)
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %13, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p, 1, 1, 0;}"
        : LADDER_FOUR(0), LADDER_FOUR(4)
        : LADDER_INPUTS);
  else
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, "
        "%23, %24, %25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;}"
        : LADDER_FOUR(0), LADDER_FOUR(4), LADDER_FOUR(8), LADDER_FOUR(12), LADDER_FOUR(16), LADDER_FOUR(20),
          LADDER_FOUR(24), LADDER_FOUR(28)
        : LADDER_INPUTS);
#endif
}

#undef LADDER_FOUR
#undef LADDER_INPUTS
#endif

}  // namespace ladder::q4_gemm
