// Hopper's instruction for a warpgroup (four warps): 64 rows of A, whose float16 numbers are in registers, times N
// columns of B, which are in shared memory, 16 of k. CUDA C++ has no name for it; its form for the CPU device stands
// beside it. Source: PTX ISA 8.8, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
//
// With g = lane / 4 and t = lane % 4, a lane of warp w has
//   a: numbers 2 t and 2 t + 1 of rows 16 w + g and 16 w + g + 8, then numbers 8 + 2 t and 9 + 2 t of the same rows;
//   sums: columns 8 j + 2 t and 8 j + 2 t + 1 of row 16 w + g, then of row 16 w + g + 8, for each j.
// B is two panels: the first 8 numbers of each column, 16 bytes, then the other 8 of each.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace q4_gemm::detail {

#ifdef __SIMT__

template <int N>
__device__ void wgmma(float (&sums)[N / 2], const uint32_t (&a)[4], const uint4* panels, bool add) {
  const int lane = threadIdx.x % 32;
  const auto* words = reinterpret_cast<const uint32_t*>(panels);
  const auto product = [](uint32_t x, uint32_t y) {
    __half2 p, q;
    std::memcpy(&p, &x, 4), std::memcpy(&q, &y, 4);
    return __low2float(p) * __low2float(q) + __high2float(p) * __high2float(q);
  };
  for (int i = 0; i < N / 2 && !add; ++i) sums[i] = 0.0f;
  for (int holder = 0; holder < 4; ++holder) {
    uint32_t rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = __shfl_sync(0xffffffffu, a[i], lane / 4 * 4 + holder);
    for (int i = 0; i < N / 2; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (int panel = 0; panel < 2; ++panel)
        sums[i] += product(rows[2 * panel + i / 2 % 2], words[(panel * N + column) * 4 + holder]);
    }
  }
}
__device__ inline void begin_wgmma() {}
__device__ inline void commit_wgmma() {}
template <int kGroups>
__device__ void wait_for_wgmma() {}
template <int kCount>
__device__ void pin(float (&)[kCount]) {}

#else

// Registers that wgmma uses may be changed before this, and not after it until the wait.
__device__ inline void begin_wgmma() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
// All that has begun since the last commit is a group.
__device__ inline void commit_wgmma() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
// Waits until no more than the last kGroups groups are at work.
template <int kGroups>
__device__ void wait_for_wgmma() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
#endif
}
// The compiler may not move a use of these sums across this.
template <int kCount>
__device__ void pin(float (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
}

// Where B lies: its address; how far the second panel is from the first, and a group of 8 columns from the one before.
// All in units of 16 bytes, no swizzle.
template <int N>
__device__ uint64_t descriptor_of(const uint4* panels) {
  const auto address = static_cast<uint64_t>(__cvta_generic_to_shared(panels));
  return (address >> 4 & 0x3fff) | uint64_t{N} << 16 | uint64_t{8} << 32;
}

#define Q4_GEMM_4(i) "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
#define Q4_GEMM_8(i) Q4_GEMM_4(i), Q4_GEMM_4(i + 4)
#define Q4_GEMM_16(i) Q4_GEMM_8(i), Q4_GEMM_8(i + 8)
#define Q4_GEMM_32(i) Q4_GEMM_16(i), Q4_GEMM_16(i + 16)
#define Q4_GEMM_64(i) Q4_GEMM_32(i), Q4_GEMM_32(i + 32)
#define Q4_GEMM_INPUTS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int{add})

// If not add, the sums begin at zero. It has only begun when the instruction is past.
template <int N>
__device__ void wgmma(float (&sums)[N / 2], const uint32_t (&a)[4], const uint4* panels, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  const uint64_t b = descriptor_of<N>(panels);
  if constexpr (N == 16) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %13, 0; wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%0, %1, %2, "
        "%3, %4, %5, %6, %7}, {%8, %9, %10, %11}, %12, p, 1, 1, 0;}"
        : Q4_GEMM_8(0)
        : Q4_GEMM_INPUTS);
  } else if constexpr (N == 32) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %21, 0; wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 {%0, %1, %2, "
        "%3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, {%16, %17, %18, %19}, %20, p, 1, 1, 0;}"
        : Q4_GEMM_16(0)
        : Q4_GEMM_INPUTS);
  } else if constexpr (N == 64) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %37, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, "
        "%3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
        "%25, %26, %27, %28, %29, %30, %31}, {%32, %33, %34, %35}, %36, p, 1, 1, 0;}"
        : Q4_GEMM_32(0)
        : Q4_GEMM_INPUTS);
  } else if constexpr (N == 128) {
    asm volatile(
        "{.reg .pred p; setp.ne.b32 p, %69, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, "
        "%3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, "
        "%25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, "
        "%46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, {%64, %65, "
        "%66, %67}, %68, p, 1, 1, 0;}"
        : Q4_GEMM_64(0)
        : Q4_GEMM_INPUTS);
  } else {
    static_assert(N == 16, "N is 16, 32, 64 or 128");
  }
#endif
}

#undef Q4_GEMM_4
#undef Q4_GEMM_8
#undef Q4_GEMM_16
#undef Q4_GEMM_32
#undef Q4_GEMM_64
#undef Q4_GEMM_INPUTS

#endif

}  // namespace q4_gemm::detail
