// Hopper's instruction for a warpgroup (four warps): 64 rows of A, which are in registers, times N columns of B, which
// are in shared memory. It takes 32 bytes of k at a time: 16 numbers as float16 with sums in float32, or 32 as int8
// with whole sums. CUDA C++ has no name for it; its form for the CPU device stands beside it. Source: PTX ISA 8.8,
// "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions".
//
// With g = lane / 4 and t = lane % 4, a lane of warp w has
//   a: bytes 4 t to 4 t + 3 of rows 16 w + g and 16 w + g + 8, then bytes 16 + 4 t to 19 + 4 t of the same rows;
//   sums: columns 8 j + 2 t and 8 j + 2 t + 1 of row 16 w + g, then of row 16 w + g + 8, for each j.
// B is two panels: the first 16 bytes of each column, then the other 16 of each.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

namespace q4_gemm::detail {

#ifdef __SIMT__

// Two panels of N columns. Adding a number of columns gives the panels that begin that many columns farther.
template <int N>
struct Panels {
  const uint32_t* words;
  __device__ explicit Panels(const void* shared) : words(static_cast<const uint32_t*>(shared)) {}
  __device__ Panels operator+(int columns) const { return Panels(words + 4 * columns); }
};

// The products of four bytes of a row and of a column.
__device__ inline float product_of(float, uint32_t x, uint32_t y) {
  __half2 p, q;
  std::memcpy(&p, &x, 4), std::memcpy(&q, &y, 4);
  return __low2float(p) * __low2float(q) + __high2float(p) * __high2float(q);
}
__device__ inline int product_of(int, uint32_t x, uint32_t y) {
  int sum = 0;
  for (int i = 0; i < 32; i += 8) sum += static_cast<signed char>(x >> i) * static_cast<signed char>(y >> i);
  return sum;
}

// T is float, for float16, or int, for int8.
template <int N, class T>
__device__ void wgmma(T (&sums)[N / 2], const uint32_t (&a)[4], Panels<N> panels, bool add) {
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < N / 2 && !add; ++i) sums[i] = 0;
  for (int holder = 0; holder < 4; ++holder) {
    uint32_t rows[4];
    for (int i = 0; i < 4; ++i) rows[i] = __shfl_sync(0xffffffffu, a[i], lane / 4 * 4 + holder);
    for (int i = 0; i < N / 2; ++i) {
      const int column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      for (int panel = 0; panel < 2; ++panel)
        sums[i] += product_of(T{}, rows[2 * panel + i / 2 % 2], panels.words[(panel * N + column) * 4 + holder]);
    }
  }
}
__device__ inline void begin_wgmma() {}
__device__ inline void commit_wgmma() {}
template <int kGroups>
__device__ void wait_for_wgmma() {}
template <class Sums>
__device__ void pin(Sums&) {}

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
template <int kCount>
__device__ void pin(int (&sums)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(sums[i])::"memory");
}

// Where B lies. In units of 16 bytes, which a column of a panel has: its address, in 14 bits; from bit 16 on, how far
// the second panel is from the first; and, a constant of the instruction below, how far a group of 8 columns is from
// the one before. No swizzle. So to add columns is one addition. (In a cluster, an address has the block's number above
// bit 23.)
template <int N>
struct Panels {
  uint32_t descriptor;
  __device__ explicit Panels(const void* shared)
      : descriptor((static_cast<uint32_t>(__cvta_generic_to_shared(shared)) & 0x3ffff) >> 4 | N << 16) {}
  __device__ Panels operator+(int columns) const {
    Panels there = *this;
    there.descriptor += columns;
    return there;
  }
};

// The instruction for each N, of what the functions below call sums, a, panels and add. `kind` is the constraint of a
// register of sums, "+f" or "+r"; NAMES are these registers in the instruction's text.
#define Q4_GEMM_4(kind, i) kind(sums[i]), kind(sums[i + 1]), kind(sums[i + 2]), kind(sums[i + 3])
#define Q4_GEMM_8(kind, i) Q4_GEMM_4(kind, i), Q4_GEMM_4(kind, i + 4)
#define Q4_GEMM_16(kind, i) Q4_GEMM_8(kind, i), Q4_GEMM_8(kind, i + 8)
#define Q4_GEMM_32(kind, i) Q4_GEMM_16(kind, i), Q4_GEMM_16(kind, i + 16)
#define Q4_GEMM_64(kind, i) Q4_GEMM_32(kind, i), Q4_GEMM_32(kind, i + 32)
#define Q4_GEMM_NAMES_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define Q4_GEMM_NAMES_16 Q4_GEMM_NAMES_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define Q4_GEMM_NAMES_32 \
  Q4_GEMM_NAMES_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define Q4_GEMM_NAMES_64                                                                              \
  Q4_GEMM_NAMES_32                                                                                    \
  ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, " \
  "%51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
// `types` and `end` are what differs between float16 and int8; a0 to sign are the operands that come after the sums.
#define Q4_GEMM_WGMMA(n, count, types, end, kind, a0, a1, a2, a3, b, sign)                  \
  asm volatile("{.reg .pred p; .reg .b64 b; setp.ne.b32 p, %" #sign ", 0; mov.b64 b, {%" #b \
               ", 8};"                                                                      \
               " wgmma.mma_async.sync.aligned.m64n" #n types " {" Q4_GEMM_NAMES_##count     \
               "}, {%" #a0 ", %" #a1 ", %" #a2 ", %" #a3 "}, b, p" end ";}"                 \
               : Q4_GEMM_##count(kind, 0)                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(panels.descriptor), "r"(int{add}))
#define Q4_GEMM_EACH(types, end, kind)                                                    \
  static_assert(N == 16 || N == 32 || N == 64 || N == 128, "16, 32, 64 or 128");          \
  if constexpr (N == 16) Q4_GEMM_WGMMA(16, 8, types, end, kind, 8, 9, 10, 11, 12, 13);    \
  if constexpr (N == 32) Q4_GEMM_WGMMA(32, 16, types, end, kind, 16, 17, 18, 19, 20, 21); \
  if constexpr (N == 64) Q4_GEMM_WGMMA(64, 32, types, end, kind, 32, 33, 34, 35, 36, 37); \
  if constexpr (N == 128) Q4_GEMM_WGMMA(128, 64, types, end, kind, 64, 65, 66, 67, 68, 69)

// If not add, the sums begin at zero. It has only begun when the instruction is past.
template <int N>
__device__ void wgmma(float (&sums)[N / 2], const uint32_t (&a)[4], Panels<N> panels, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  Q4_GEMM_EACH("k16.f32.f16.f16", ", 1, 1, 0", "+f");
#endif
}
template <int N>
__device__ void wgmma(int (&sums)[N / 2], const uint32_t (&a)[4], Panels<N> panels, bool add) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  Q4_GEMM_EACH("k32.s32.s8.s8", "", "+r");
#endif
}

#undef Q4_GEMM_4
#undef Q4_GEMM_8
#undef Q4_GEMM_16
#undef Q4_GEMM_32
#undef Q4_GEMM_64
#undef Q4_GEMM_NAMES_8
#undef Q4_GEMM_NAMES_16
#undef Q4_GEMM_NAMES_32
#undef Q4_GEMM_NAMES_64
#undef Q4_GEMM_WGMMA
#undef Q4_GEMM_EACH

#endif

}  // namespace q4_gemm::detail
