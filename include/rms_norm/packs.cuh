// Packs: neighbouring elements of a row, which stay in 32-bit registers until they are computed with.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cuda/annotated_ptr>
#include <type_traits>

namespace rms_norm::detail {

template <class T>
constexpr bool is_element = std::is_same_v<T, float> || std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

template <class T, int N>
struct Pack {
  static constexpr size_t kBytes = N * sizeof(T);
  static constexpr int kWords = (kBytes + 3) / 4;
  using Access = std::conditional_t<
      kBytes % 16 == 0, uint4,
      std::conditional_t<
          kBytes == 8, uint2,
          std::conditional_t<kBytes == 4, unsigned, std::conditional_t<kBytes == 2, unsigned short, unsigned char>>>>;
  static constexpr int kAccesses = kBytes / sizeof(Access);
  alignas(16) unsigned word[kWords];
};

// Loads and stores. If `hinted`, L2 is told by `cache` how long to keep what is accessed, compared with everything
// else.
template <int N, bool hinted = false, class T>
__device__ Pack<T, N> load(const T* address, [[maybe_unused]] cuda::access_property cache = {}) {
  using Access = typename Pack<T, N>::Access;
  Pack<T, N> pack = {};
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i) {
    const Access* from = reinterpret_cast<const Access*>(address) + i;
    if constexpr (hinted) from = cuda::associate_access_property(from, cache);
    if constexpr (pack.kBytes == 2)
      pack.word[i] = *from;  // the whole word, or an instruction after the load would move half of it
    else
      reinterpret_cast<Access*>(pack.word)[i] = *from;
  }
  return pack;
}
// For memory that no kernel writes meanwhile: the compiler may move the load before stores.
template <int N, class T>
__device__ Pack<T, N> load_constant(const T* address) {
  using Access = typename Pack<T, N>::Access;
  Pack<T, N> pack = {};
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i)
    reinterpret_cast<Access*>(pack.word)[i] = __ldg(reinterpret_cast<const Access*>(address) + i);
  return pack;
}
// The same at the address of any element, in words. Where an element of 16 bits begins in the middle of a word, in
// words and two halves. (Two 16-byte loads, of the blocks around it, take longer: the words must be moved to their
// places.) Without kConstant, for memory that this kernel writes, too.
template <int N, bool kConstant = true, class T>
__device__ Pack<T, N> load_unaligned(const T* address) {
  const auto element = [](const T* from) { return kConstant ? load_constant<1>(from).word[0] : load<1>(from).word[0]; };
  const auto word_at = [](const T* from) {
    const auto* const words = reinterpret_cast<const unsigned*>(from);
    return kConstant ? __ldg(words) : *words;
  };
  const bool odd = sizeof(T) == 2 && reinterpret_cast<uintptr_t>(address) % 4 != 0;
  unsigned before = odd ? element(address) << 16 : 0;
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < pack.kWords; ++i) {
    const T* const from = address + odd + i * (4 / sizeof(T));
    const unsigned word = odd && i + 1 == pack.kWords ? element(from) : word_at(from);
    pack.word[i] = __funnelshift_rc(before, word, odd ? 16 : 32);  // the last 16 bits before, and 16 bits; or the word
    before = word;
  }
  return pack;
}
// The first `count` elements of a pack at the address of any element, and zeros.
template <int N, bool kConstant = true, class T>
__device__ Pack<T, N> load_some(const T* address, int64_t count) {
  if (count >= N) return load_unaligned<N, kConstant>(address);
  Pack<T, N> pack = {};
  constexpr int kPerWord = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < count) {
      const unsigned bits = kConstant ? load_constant<1>(address + i).word[0] : load<1>(address + i).word[0];
      pack.word[i / kPerWord] |= bits << (i % kPerWord * 8 * sizeof(T));
    }
  return pack;
}
template <bool hinted, class T, int N>
__device__ void store(T* address, const Pack<T, N>& pack, [[maybe_unused]] cuda::access_property cache = {}) {
  using Access = typename Pack<T, N>::Access;
#pragma unroll
  for (int i = 0; i < pack.kAccesses; ++i) {
    Access* to = reinterpret_cast<Access*>(address) + i;
    if constexpr (hinted) to = cuda::associate_access_property(to, cache);
    *to = reinterpret_cast<const Access*>(pack.word)[i];
  }
}

template <class T, int N>
__device__ void store_some(T* address, const Pack<T, N>& pack, int64_t count) {
  constexpr int kPerWord = 4 / sizeof(T);
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (i < count) {
      Pack<T, 1> element;
      element.word[0] = pack.word[i / kPerWord] >> (i % kPerWord * 8 * sizeof(T));
      store<false>(address + i, element);
    }
}

// The float32 values in a word, which holds two elements or one. `again` uses other instructions: otherwise the
// compiler would keep the values that it unpacked the first time, which take twice the registers of the word.
template <class T, bool again>
__device__ float2 unpack_word(unsigned word) {
  if constexpr (std::is_same_v<T, float>) return {__uint_as_float(word), 0.0f};
  if constexpr (std::is_same_v<T, __half>) return __half22float2(reinterpret_cast<const __half2&>(word));
  if constexpr (again)
    return {__uint_as_float(__byte_perm(word, 0, 0x1044)), __uint_as_float(__byte_perm(word, 0, 0x3244))};
  return {__uint_as_float(word << 16), __uint_as_float(word & 0xffff0000u)};
}
template <bool again = false, class T, int N>
__device__ void unpack(const Pack<T, N>& pack, float (&value)[N]) {
  constexpr int kPerWord = sizeof(T) == 4 ? 1 : 2;
#pragma unroll
  for (int i = 0; i < pack.kWords; ++i) {
    const float2 two = unpack_word<T, again>(pack.word[i]);
    value[i * kPerWord] = two.x;
    if (kPerWord == 2 && 2 * i + 1 < N) value[2 * i + 1] = two.y;
  }
}
// Rounded to nearest even.
template <class T, int N>
__device__ Pack<T, N> round_to(const float (&value)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < pack.kWords; ++i) {
    const float first = value[i * N / pack.kWords], second = 2 * i + 1 < N ? value[2 * i + 1] : 0.0f;
    if constexpr (std::is_same_v<T, float>) {
      pack.word[i] = __float_as_uint(first);
    } else if constexpr (std::is_same_v<T, __half>) {
      const __half2 pair = __floats2half2_rn(first, second);
      pack.word[i] = reinterpret_cast<const unsigned&>(pair);
    } else {
      const __nv_bfloat162 pair = __floats2bfloat162_rn(first, second);
      pack.word[i] = reinterpret_cast<const unsigned&>(pair);
    }
  }
  return pack;
}
// Sums of 16-bit elements, two by one instruction, which rounds once. A sum in float32 that is then rounded is the same
// number: with at least twice as many digits, and two more, the first of two roundings changes nothing.
#if defined(__SIMT__) || __CUDA_ARCH__ >= 800
template <class T>
constexpr bool adds_in_pairs = !std::is_same_v<T, float>;
#else
template <class T>
constexpr bool adds_in_pairs = false;
#endif
template <class T, int N>
__device__ Pack<T, N> add_in_pairs(const Pack<T, N>& a, const Pack<T, N>& b) {
  using Two = std::conditional_t<std::is_same_v<T, __half>, __half2, __nv_bfloat162>;
  Pack<T, N> sum;
#pragma unroll
  for (int i = 0; i < sum.kWords; ++i) {
    const Two two = __hadd2_rn(reinterpret_cast<const Two&>(a.word[i]), reinterpret_cast<const Two&>(b.word[i]));
    sum.word[i] = reinterpret_cast<const unsigned&>(two);
  }
  return sum;
}
// One rounding for each product, in every kernel: a compiler that may choose would not choose everywhere alike.
__device__ inline float add_product(float a, float b, float sum) {
#if defined(__SIMT__) && !defined(__FP_FAST_FMAF)
  return sum + a * b;  // this CPU has no such instruction, so that nothing is chosen
#else
  return fmaf(a, b, sum);
#endif
}
__device__ inline float add_square(float value, float sum) { return add_product(value, value, sum); }
template <class T, int N>
__device__ float sum_of_squares(const Pack<T, N>& pack) {
  float value[N];
  unpack(pack, value);
  float sum = value[0] * value[0];
#pragma unroll
  for (int k = 1; k < N; ++k) sum = add_square(value[k], sum);
  return sum;
}

}  // namespace rms_norm::detail
