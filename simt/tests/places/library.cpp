#include <cstdint>

static __attribute__((noinline)) uintptr_t here() { return uintptr_t(__builtin_return_address(0)) - 1; }

uintptr_t here_in_the_library() {
  const uintptr_t pc = here();
  asm volatile("");
  return pc;
}
