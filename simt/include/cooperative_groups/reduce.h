// cooperative_groups::reduce and its forms that end in memory.
#pragma once
#include "cooperative_groups/details/collective.h"
#include "cuda/atomic"

namespace cooperative_groups {

template <class Group, class T, class Operator>
details::Plain<T> reduce(const Group& group, T&& value, Operator&& op, simt::Site site = simt::Site::here()) {
  details::check_collective<Group, details::Plain<T>, Operator>();
  return details::reduce(group, details::Plain<T>(value), op, site);
}

// The group's sum is stored to, or combined with, what `destination` holds. There is nothing to wait for.
template <class Group, class T, class Value, class Operator>
SIMT_OWN void reduce_store_async(const Group& group, T* destination, Value&& value, Operator&& op,
                                 simt::Site site = simt::Site::here()) {
  const T total = reduce(group, T(value), op, site);
  if (group.thread_rank() != 0) return;
  simt::note_store(destination, sizeof(T));
  *destination = total;
}
template <class Group, class T, cuda::thread_scope Scope, class Value, class Operator>
void reduce_store_async(const Group& group, cuda::atomic<T, Scope>& destination, Value&& value, Operator&& op,
                        simt::Site site = simt::Site::here()) {
  const T total = reduce(group, T(value), op, site);
  if (group.thread_rank() == 0) destination.store(total);
}
template <class Group, class T, cuda::thread_scope Scope, class Value, class Operator>
void reduce_store_async(const Group& group, const cuda::atomic_ref<T, Scope>& destination, Value&& value, Operator&& op,
                        simt::Site site = simt::Site::here()) {
  const T total = reduce(group, T(value), op, site);
  if (group.thread_rank() == 0) destination.store(total);
}
template <class Group, class T, cuda::thread_scope Scope, class Value, class Operator>
void reduce_update_async(const Group& group, cuda::atomic<T, Scope>& destination, Value&& value, Operator&& op,
                         simt::Site site = simt::Site::here()) {
  const T total = reduce(group, T(value), op, site);
  if (group.thread_rank() == 0) destination.update([&](const T& old) { return op(old, total); });
}
template <class Group, class T, cuda::thread_scope Scope, class Value, class Operator>
void reduce_update_async(const Group& group, const cuda::atomic_ref<T, Scope>& destination, Value&& value,
                         Operator&& op, simt::Site site = simt::Site::here()) {
  const T total = reduce(group, T(value), op, site);
  if (group.thread_rank() == 0) destination.update([&](const T& old) { return op(old, total); });
}

}  // namespace cooperative_groups
