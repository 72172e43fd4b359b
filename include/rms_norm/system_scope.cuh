// Loads and stores of memory that several GPUs share, with the scope written out: .sys, the whole system.
#pragma once

#include <cuda_runtime.h>

#include <cuda/atomic>

namespace rms_norm::detail {

// Four words, of which each arrives whole; they may arrive one by one. Both pass by the L1 cache. Neither orders
// anything else: who finds a word there knows that word, and nothing about other memory.
__device__ inline void store_for_system(uint4* to, const uint4& words) {
#ifdef __SIMT__
  const unsigned value[] = {words.x, words.y, words.z, words.w};
  for (int i = 0; i < 4; ++i)
    cuda::atomic_ref<unsigned, cuda::thread_scope_system>(reinterpret_cast<unsigned*>(to)[i])
        .store(value[i], cuda::memory_order_relaxed);
#else
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(words.x), "r"(words.y),
               "r"(words.z), "r"(words.w)
               : "memory");
#endif
}
__device__ inline uint4 load_from_system(const uint4* from) {
  uint4 words;
#ifdef __SIMT__
  const auto word = [&](int i) {
    auto* const all = reinterpret_cast<unsigned*>(const_cast<uint4*>(from));
    return cuda::atomic_ref<unsigned, cuda::thread_scope_system>(all[i]).load(cuda::memory_order_relaxed);
  };
  words = {word(0), word(1), word(2), word(3)};
#else
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(from)
               : "memory");
#endif
  return words;
}

}  // namespace rms_norm::detail
