// Copied to where a header of the CPU device would lie.
#pragma once
#include <cstdint>

// Where it is called.
__attribute__((noinline)) inline uintptr_t here() {
  asm volatile("");  // two calls stay two
  return uintptr_t(__builtin_return_address(0)) - 1;
}

inline __attribute__((always_inline)) uintptr_t inlined_from_a_header() { return here(); }
