// The compiler's hooks for atomic operations. Each replaces the operation, so it also performs it.
#include "hooks.h"
#include "recorder.h"
#include "scheduler.h"
#include "written.h"

using namespace simt;
using namespace simt::analysis;

namespace {

bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }
bool releases(int order) { return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST; }

// Of the student's, atomics are requests; of the device, its own business.
void note(Worker* w, Call call, const volatile void* address, size_t size, Kind kind, int order) {
  if (is_telling || reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(w->lane->stack) < kStackSize)
    return;
  const Pc pc = students_call(call).pc;
  if (!pc && kind != Kind::load) note_written(const_cast<const void*>(address), size);
  if (!pc) return;
  Access access{kind, kind != Kind::atomic};
  access.overwrites = kind == Kind::store;
  access.acquires = kind != Kind::store && acquires(order);
  access.releases = kind != Kind::load && releases(order);
  report(*w, pc, address, size, access, size);
}

}  // namespace

#define SIMT_NOTE(kind, size, order) \
  if (Worker* w = worker; w && w->lane) note(w, SIMT_CALL_HERE(*w), a, size, kind, order)

#define SIMT_FETCH(bits, T, name, builtin)                            \
  T __tsan_atomic##bits##_##name(volatile T* a, T value, int order) { \
    SIMT_NOTE(Kind::atomic, sizeof(T), order);                        \
    return builtin(a, value, __ATOMIC_SEQ_CST);                       \
  }
#define SIMT_COMPARE(bits, T, name, weak)                                                                    \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile T* a, T* expected, T desired, int order, int) { \
    SIMT_NOTE(Kind::atomic, sizeof(T), order);                                                               \
    return __atomic_compare_exchange_n(a, expected, desired, weak, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);      \
  }
#define SIMT_ATOMIC_HOOKS(bits, T)                                                                     \
  T __tsan_atomic##bits##_load(const volatile T* a, int order) {                                       \
    SIMT_NOTE(Kind::load, sizeof(T), order);                                                           \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                       \
  }                                                                                                    \
  void __tsan_atomic##bits##_store(volatile T* a, T value, int order) {                                \
    SIMT_NOTE(Kind::store, sizeof(T), order);                                                          \
    __atomic_store_n(a, value, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                    \
  SIMT_FETCH(bits, T, exchange, __atomic_exchange_n)                                                   \
  SIMT_FETCH(bits, T, fetch_add, __atomic_fetch_add)                                                   \
  SIMT_FETCH(bits, T, fetch_sub, __atomic_fetch_sub)                                                   \
  SIMT_FETCH(bits, T, fetch_and, __atomic_fetch_and)                                                   \
  SIMT_FETCH(bits, T, fetch_or, __atomic_fetch_or)                                                     \
  SIMT_FETCH(bits, T, fetch_xor, __atomic_fetch_xor)                                                   \
  SIMT_FETCH(bits, T, fetch_nand, __atomic_fetch_nand)                                                 \
  SIMT_COMPARE(bits, T, strong, false)                                                                 \
  SIMT_COMPARE(bits, T, weak, true)                                                                    \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T expected, T desired, int order, int) { \
    SIMT_NOTE(Kind::atomic, sizeof(T), order);                                                         \
    __atomic_compare_exchange_n(a, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);     \
    return expected;                                                                                   \
  }

extern "C" {

SIMT_ATOMIC_HOOKS(8, uint8_t)
SIMT_ATOMIC_HOOKS(16, uint16_t)
SIMT_ATOMIC_HOOKS(32, uint32_t)
SIMT_ATOMIC_HOOKS(64, uint64_t)

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

}  // extern "C"
