// nvcc's built-ins __nv_atomic_*, on cuda::atomic_ref. simtcc includes this where a program has one of them.
#pragma once
#include <cuda/atomic>

enum { __NV_ATOMIC_RELAXED, __NV_ATOMIC_CONSUME, __NV_ATOMIC_ACQUIRE };
enum { __NV_ATOMIC_RELEASE = 3, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_SEQ_CST };
enum { __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER };
enum { __NV_THREAD_SCOPE_DEVICE = 3, __NV_THREAD_SCOPE_SYSTEM };

namespace simt {

inline cuda::memory_order nv_order(int order) {
  return order == __NV_ATOMIC_RELAXED   ? cuda::memory_order_relaxed
         : order == __NV_ATOMIC_RELEASE ? cuda::memory_order_release
         : order == __NV_ATOMIC_ACQ_REL ? cuda::memory_order_acq_rel
         : order == __NV_ATOMIC_SEQ_CST ? cuda::memory_order_seq_cst
                                        : cuda::memory_order_acquire;
}

// use(a reference to the object with that scope)
template <class T, class Use>
auto nv_atomic(T* object, int scope, Use use) {
  if (scope <= __NV_THREAD_SCOPE_BLOCK) return use(cuda::atomic_ref<T, cuda::thread_scope_block>(*object));
  if (scope <= __NV_THREAD_SCOPE_DEVICE) return use(cuda::atomic_ref<T, cuda::thread_scope_device>(*object));
  return use(cuda::atomic_ref<T, cuda::thread_scope_system>(*object));
}

template <class T>
using Same = std::common_type_t<T>;  // no argument to deduce T from

}  // namespace simt

inline void __nv_atomic_thread_fence(int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  const cuda::memory_order as = simt::nv_order(order);
  if (scope <= __NV_THREAD_SCOPE_BLOCK) return cuda::atomic_thread_fence(as, cuda::thread_scope_block);
  if (scope <= __NV_THREAD_SCOPE_DEVICE) return cuda::atomic_thread_fence(as, cuda::thread_scope_device);
  cuda::atomic_thread_fence(as, cuda::thread_scope_system);
}

template <class T>
T __nv_atomic_load_n(T* from, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return simt::nv_atomic(from, scope, [&](auto object) { return object.load(simt::nv_order(order)); });
}
template <class T>
void __nv_atomic_load(T* from, T* result, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  *result = __nv_atomic_load_n(from, order, scope);
}
template <class T>
void __nv_atomic_store_n(T* to, simt::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  simt::nv_atomic(to, scope, [&](auto object) { object.store(value, simt::nv_order(order)); });
}
template <class T>
void __nv_atomic_store(T* to, T* value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  __nv_atomic_store_n(to, *value, order, scope);
}
template <class T>
T __nv_atomic_exchange_n(T* at, simt::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return simt::nv_atomic(at, scope, [&](auto object) { return object.exchange(value, simt::nv_order(order)); });
}
template <class T>
void __nv_atomic_exchange(T* at, T* value, T* result, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {
  *result = __nv_atomic_exchange_n(at, *value, order, scope);
}
template <class T>
bool __nv_atomic_compare_exchange_n(T* at, T* expected, simt::Same<T> desired, bool, int success, int failure,
                                    int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return simt::nv_atomic(at, scope, [&](auto object) {
    return object.compare_exchange_strong(*expected, desired, simt::nv_order(success), simt::nv_order(failure));
  });
}
template <class T>
bool __nv_atomic_compare_exchange(T* at, T* expected, T* desired, bool weak, int success, int failure,
                                  int scope = __NV_THREAD_SCOPE_SYSTEM) {
  return __nv_atomic_compare_exchange_n(at, expected, *desired, weak, success, failure, scope);
}

#define SIMT_NV_ATOMIC(name)                                                                                           \
  template <class T>                                                                                                   \
  T __nv_atomic_fetch_##name(T* at, simt::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {            \
    return simt::nv_atomic(at, scope, [&](auto object) { return object.fetch_##name(value, simt::nv_order(order)); }); \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  void __nv_atomic_##name(T* at, simt::Same<T> value, int order, int scope = __NV_THREAD_SCOPE_SYSTEM) {               \
    __nv_atomic_fetch_##name(at, value, order, scope);                                                                 \
  }
SIMT_NV_ATOMIC(add)
SIMT_NV_ATOMIC(sub)
SIMT_NV_ATOMIC(and)
SIMT_NV_ATOMIC(or)
SIMT_NV_ATOMIC(xor)
SIMT_NV_ATOMIC(min)
SIMT_NV_ATOMIC(max)
#undef SIMT_NV_ATOMIC
