// cooperative_groups::inclusive_scan and exclusive_scan.
#pragma once
#include "cooperative_groups/details/collective.h"
#include "cuda/atomic"

namespace cooperative_groups {

template <class Group, class T, class Operator>
details::Plain<T> inclusive_scan(const Group& group, T&& value, Operator&& op, simt::Site site = simt::Site::here()) {
  details::check_collective<Group, details::Plain<T>, Operator>();
  return details::scan(group, details::Plain<T>(value), op, site).inclusive;
}
template <class Group, class T>
details::Plain<T> inclusive_scan(const Group& group, T&& value, simt::Site site = simt::Site::here()) {
  return inclusive_scan(group, value, plus<details::Plain<T>>(), site);
}

// The first thread gets a value-initialized T.
template <class Group, class T, class Operator>
details::Plain<T> exclusive_scan(const Group& group, T&& value, Operator&& op, simt::Site site = simt::Site::here()) {
  details::check_collective<Group, details::Plain<T>, Operator>();
  return details::scan(group, details::Plain<T>(value), op, site).exclusive;
}
template <class Group, class T>
details::Plain<T> exclusive_scan(const Group& group, T&& value, simt::Site site = simt::Site::here()) {
  return exclusive_scan(group, value, plus<details::Plain<T>>(), site);
}

namespace details {

// One thread combines the group's sum with what `destination` holds; the scan starts from what was there before.
template <class Group, class T, class Destination, class Operator>
Scan<T> scan_update(const Group& group, Destination& destination, T value, Operator& op, simt::Site site) {
  check_collective<Group, T, Operator>();
  const T total = reduce(group, value, op, site);
  T before{};
  if (group.thread_rank() == 0) before = destination.update([&](const T& old) { return op(old, total); });
  before = group.shfl(before, 0, site);
  const Scan<T> own = scan(group, value, op, site);
  return {op(before, own.inclusive), group.thread_rank() == 0 ? before : op(before, own.exclusive)};
}

}  // namespace details

#define SIMT_SCAN_UPDATE(kind, Atomic)                                                                  \
  template <class Group, class T, cuda::thread_scope Scope, class Value, class Operator>                \
  T kind##_scan_update(const Group& group, Atomic<T, Scope>& destination, Value&& value, Operator&& op, \
                       simt::Site site = simt::Site::here()) {                                          \
    return details::scan_update(group, destination, T(value), op, site).kind;                           \
  }                                                                                                     \
  template <class Group, class T, cuda::thread_scope Scope, class Value>                                \
  T kind##_scan_update(const Group& group, Atomic<T, Scope>& destination, Value&& value,                \
                       simt::Site site = simt::Site::here()) {                                          \
    return kind##_scan_update(group, destination, value, plus<T>(), site);                              \
  }
SIMT_SCAN_UPDATE(inclusive, cuda::atomic)
SIMT_SCAN_UPDATE(inclusive, const cuda::atomic_ref)
SIMT_SCAN_UPDATE(exclusive, cuda::atomic)
SIMT_SCAN_UPDATE(exclusive, const cuda::atomic_ref)
#undef SIMT_SCAN_UPDATE

}  // namespace cooperative_groups
