// Switching between stacks. On x86-64 it is done here and inlined: what the compiler keeps in registers it saves
// itself, and the control words of floating point, which kernels do not change, stay as they are. Elsewhere
// Boost.Context does it.
#pragma once
#include <cstddef>

#if defined(__x86_64__) && !defined(__CET__)

namespace simt {

using Context = void*;  // of a stack that waits: its stack pointer

struct Transfer {
  Context from;  // who has switched here
  void* data;    // what it passes on
};

extern "C" void simt_fiber_start();  // scheduler.cpp

// The function never returns.
template <void (*function)(Transfer)>
Context make_context(char* top, size_t) {
  auto** words = reinterpret_cast<void**>(reinterpret_cast<size_t>(top) & ~static_cast<size_t>(15));
  *--words = nullptr;  // where a debugger's walk of the stack ends
  *--words = reinterpret_cast<void*>(function);
  *--words = reinterpret_cast<void*>(simt_fiber_start);
  return words;
}

__attribute__((always_inline)) inline Transfer switch_to_context(Context to, void* data) {
  Context from;
  asm volatile(
      "lea -128(%%rsp), %%rsp\n\t"  // below what a function may use without moving the stack pointer
      "push %%rbp\n\t"
      "lea 1f(%%rip), %%rcx\n\t"
      "push %%rcx\n\t"
      "mov %%rsp, %%rax\n\t"
      "mov %%rdi, %%rsp\n\t"
      "pop %%rcx\n\t"
      "jmp *%%rcx\n"
      "1:\n\t"
      "pop %%rbp\n\t"
      "lea 128(%%rsp), %%rsp"
      : "=&a"(from), "+&D"(to), "+&S"(data)
      :
      : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
        "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "memory",
        "cc");
  return {from, data};
}

}  // namespace simt

#else

#include <boost/context/detail/fcontext.hpp>

namespace simt {

using Context = boost::context::detail::fcontext_t;

struct Transfer {
  Context from;
  void* data;
};

template <void (*function)(Transfer)>
void start_fiber(boost::context::detail::transfer_t from) {
  function({from.fctx, from.data});
}

template <void (*function)(Transfer)>
Context make_context(char* top, size_t size) {
  return boost::context::detail::make_fcontext(top, size, start_fiber<function>);
}

inline Transfer switch_to_context(Context to, void* data) {
  const auto back = boost::context::detail::jump_fcontext(to, data);
  return {back.fctx, back.data};
}

}  // namespace simt

#endif
