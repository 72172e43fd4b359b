// Loads and stores with a cache hint. The CPU device has no caches to steer: each is a plain access. Address spaces.
#pragma once
#include "atomic.h"
#include "core.h"
#include "vector_types.h"

namespace simt {

// CUDA has the cache-hinted accesses for these types and no others.
template <class T>
constexpr bool has_cache_hints = is_one_of<T, char, signed char, unsigned char, short, unsigned short, int, unsigned,
                                           long, unsigned long, long long, unsigned long long, float, double> ||
                                 is_one_of<T, char2, char4, uchar2, uchar4, short2, short4, ushort2, ushort4, int2,
                                           int4, uint2, uint4, longlong2, ulonglong2, float2, float4, double2> ||
                                 is_one_of<T, __half, __half2, __nv_bfloat16, __nv_bfloat162>;

}  // namespace simt

#define SIMT_LOAD(name)                                                   \
  template <class T, std::enable_if_t<simt::has_cache_hints<T>, int> = 0> \
  T name(const T* address) {                                              \
    return *address;                                                      \
  }
SIMT_LOAD(__ldg)
SIMT_LOAD(__ldcg)
SIMT_LOAD(__ldca)
SIMT_LOAD(__ldcs)
SIMT_LOAD(__ldlu)
#undef SIMT_LOAD

// Don't cache, fetch again: what a loop that polls a flag uses.
template <class T, std::enable_if_t<simt::has_cache_hints<T>, int> = 0>
T __ldcv(const T* address) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if constexpr (simt::kAnalysis && std::is_arithmetic_v<T>) return *static_cast<const volatile T*>(address);
  return *address;
}

#define SIMT_STORE(name)                                                  \
  template <class T, std::enable_if_t<simt::has_cache_hints<T>, int> = 0> \
  void name(T* address, simt::NotDeduced<T> value) {                      \
    *address = value;                                                     \
  }
SIMT_STORE(__stwb)
SIMT_STORE(__stcg)
SIMT_STORE(__stcs)
SIMT_STORE(__stwt)
#undef SIMT_STORE

// All spaces share one address space here, so that the conversions keep the address.
inline size_t __cvta_generic_to_shared(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_global(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_local(const void* address) { return reinterpret_cast<size_t>(address); }
inline size_t __cvta_generic_to_constant(const void* address) { return reinterpret_cast<size_t>(address); }
inline void* __cvta_shared_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_local_to_generic(size_t address) { return reinterpret_cast<void*>(address); }
inline void* __cvta_constant_to_generic(size_t address) { return reinterpret_cast<void*>(address); }

// Shared memory of the calling block; of any block of its cluster. Global, local and constant memory cannot be
// distinguished here, so __isGlobal and its kin are absent.
inline unsigned __isShared(const void* address) {
  return simt::query_shared_rank(address) == static_cast<int>(simt::cluster_position().rank);
}
inline unsigned __isCtaShared(const void* address) { return __isShared(address); }
inline unsigned __isClusterShared(const void* address) { return simt::is_shared(address); }
