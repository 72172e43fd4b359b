// CUDA's atomic functions, for the types CUDA has them for. Each suffix (_block, _system) does what the plain one does;
// the analysis distinguishes their scopes.
#pragma once
#include <cstring>
#include <type_traits>

#include "analysis.h"
#include "core.h"
#include "driver_types.h"
#include "warp.h"

struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;

namespace simt {

template <class T, class... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

template <size_t size>
struct WordOfSize;
template <>
struct WordOfSize<1> {
  using type = uint8_t;
};
template <>
struct WordOfSize<2> {
  using type = uint16_t;
};
template <>
struct WordOfSize<4> {
  using type = uint32_t;
};
template <>
struct WordOfSize<8> {
  using type = uint64_t;
};

// Before each atomic access of `size` bytes.
inline void begin_atomic(const volatile void* address, size_t size, Site site) {
  if (reinterpret_cast<uintptr_t>(address) % size)
    device_fault(cudaErrorMisalignedAddress, "the address of an atomic operation is not a multiple of its size", site);
  atomic_point(const_cast<const void*>(address));
}

// Replaces *address by next(*address) in one step and returns what was there. Floating-point values are compared by
// their bits, so that a NaN does not loop for ever.
template <class T, class Next>
SIMT_OWN T exchange_atomically(T* address, Next next) {
  using Word = typename WordOfSize<sizeof(T)>::type;
  Word* word = reinterpret_cast<Word*>(address);
  Word old_word = __atomic_load_n(word, __ATOMIC_RELAXED);
  for (;;) {
    alignas(T) unsigned char bytes[sizeof(T)];
    std::memcpy(bytes, &old_word, sizeof(T));
    const T& old = *reinterpret_cast<const T*>(bytes);
    const T desired = next(old);
    Word new_word;
    std::memcpy(&new_word, &desired, sizeof(T));
    if (__atomic_compare_exchange_n(word, &old_word, new_word, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
      note_result(address, old_word, new_word != old_word);
      return old;
    }
  }
}

template <class T, class Next>
T atomic_update(T* address, Site site, Reach scope, Next next, Does does = Does::update) {
  begin_atomic(address, sizeof(T), site);
  note_atomic(address, sizeof(T), Order::relaxed, scope, does);
  return exchange_atomically(address, next);
}

// The element types of CUDA's overloads.
template <class T>
constexpr bool is_int32 = is_one_of<T, int, unsigned>;
template <class T>
constexpr bool is_int64 = is_one_of<T, long long, unsigned long long>;
template <class T>
constexpr bool has_atomic_add =
    is_int32<T> || is_one_of<T, unsigned long long, float, double, __half, __half2, __nv_bfloat16, __nv_bfloat162>;
template <class T>
constexpr bool has_atomic_exchange = is_int32<T> || is_one_of<T, unsigned long long, float>;
template <class T>
constexpr bool has_compare_and_swap = is_int32<T> || is_one_of<T, unsigned long long, unsigned short>;

}  // namespace simt

#define SIMT_ATOMIC(name, scope, condition, parameter, expression)                                \
  template <class T, std::enable_if_t<(condition), int> = 0>                                      \
  T name(T* address, simt::NotDeduced<T> parameter, simt::Site site = simt::Site::here()) {       \
    return simt::atomic_update(address, site, scope,                                              \
                               [&]([[maybe_unused]] const T& old) -> T { return (expression); }); \
  }

#define SIMT_ATOMICS(suffix, scope)                                                                               \
  SIMT_ATOMIC(atomicAdd##suffix, scope, simt::has_atomic_add<T>, value, old + value)                              \
  SIMT_ATOMIC(atomicSub##suffix, scope, simt::is_int32<T>, value, old - value)                                    \
  SIMT_ATOMIC(atomicMin##suffix, scope, simt::is_int32<T> || simt::is_int64<T>, value, value < old ? value : old) \
  SIMT_ATOMIC(atomicMax##suffix, scope, simt::is_int32<T> || simt::is_int64<T>, value, old < value ? value : old) \
  SIMT_ATOMIC(atomicAnd##suffix, scope, simt::is_int32<T> || simt::is_int64<T>, value, old & value)               \
  SIMT_ATOMIC(atomicOr##suffix, scope, simt::is_int32<T> || simt::is_int64<T>, value, old | value)                \
  SIMT_ATOMIC(atomicXor##suffix, scope, simt::is_int32<T> || simt::is_int64<T>, value, old ^ value)               \
  template <class T, std::enable_if_t<simt::has_atomic_exchange<T>, int> = 0>                                     \
  T atomicExch##suffix(T* address, simt::NotDeduced<T> value, simt::Site site = simt::Site::here()) {             \
    return simt::atomic_update(                                                                                   \
        address, site, scope, [&](const T&) { return value; }, simt::Does::exchange);                             \
  }                                                                                                               \
  inline unsigned atomicInc##suffix(unsigned* address, unsigned limit, simt::Site site = simt::Site::here()) {    \
    return simt::atomic_update(address, site, scope, [=](unsigned old) { return old >= limit ? 0 : old + 1; });   \
  }                                                                                                               \
  inline unsigned atomicDec##suffix(unsigned* address, unsigned limit, simt::Site site = simt::Site::here()) {    \
    return simt::atomic_update(address, site, scope,                                                              \
                               [=](unsigned old) { return old == 0 || old > limit ? limit : old - 1; });          \
  }                                                                                                               \
  template <class T, std::enable_if_t<simt::has_compare_and_swap<T>, int> = 0>                                    \
  T atomicCAS##suffix(T* address, simt::NotDeduced<T> expected, simt::NotDeduced<T> desired,                      \
                      simt::Site site = simt::Site::here()) {                                                     \
    return simt::atomic_update(address, site, scope, [=](T old) { return old == expected ? desired : old; });     \
  }                                                                                                               \
  /* Vectors are atomic element by element, as on the GPU. */                                                     \
  inline float2 atomicAdd##suffix(float2* address, float2 value, simt::Site site = simt::Site::here()) {          \
    return {atomicAdd##suffix(&address->x, value.x, site), atomicAdd##suffix(&address->y, value.y, site)};        \
  }                                                                                                               \
  inline float4 atomicAdd##suffix(float4* address, float4 value, simt::Site site = simt::Site::here()) {          \
    return {atomicAdd##suffix(&address->x, value.x, site), atomicAdd##suffix(&address->y, value.y, site),         \
            atomicAdd##suffix(&address->z, value.z, site), atomicAdd##suffix(&address->w, value.w, site)};        \
  }

SIMT_ATOMICS(, simt::Reach::device)
SIMT_ATOMICS(_block, simt::Reach::block)
SIMT_ATOMICS(_system, simt::Reach::system)
#undef SIMT_ATOMICS
#undef SIMT_ATOMIC
