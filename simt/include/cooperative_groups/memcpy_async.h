// cooperative_groups::memcpy_async: the threads of a group copy from global to shared memory; the copy arrives at the
// wait().
#pragma once
#include "cooperative_groups.h"
#include "simt/async_copy.h"

namespace cooperative_groups {

// Sizes are in bytes.
template <class Group, class T, class Size>
void memcpy_async(const Group& group, T* destination, const T* source, const Size& size,
                  simt::Site site = simt::Site::here()) {
  static_assert(details::is_tileable<Group>::value || std::is_same_v<Group, coalesced_group>,
                "memcpy_async takes a block, a tile or a coalesced group");
  constexpr size_t promised = simt::promised_alignment<Size>;
  simt::check_alignment(destination, source, promised > 1 ? static_cast<size_t>(size) : 0,
                        std::max(promised, simt::alignment_of<T>), site);
  simt::divide_copy(group, const_cast<std::remove_const_t<T>*>(destination), source, static_cast<size_t>(size),
                    [](void* to, const void* from, size_t bytes) { simt::async_copy(to, from, bytes, 0); });
  simt::async_commit();
}

// Sizes are in elements; the smaller one counts.
template <class Group, class T, class DestinationSize, class SourceSize>
void memcpy_async(const Group& group, T* destination, const DestinationSize& destination_size, const T* source,
                  const SourceSize& source_size, simt::Site site = simt::Site::here()) {
  memcpy_async(group, destination, source,
               std::min(static_cast<size_t>(destination_size), static_cast<size_t>(source_size)) * sizeof(T), site);
}

// All but the group's newest `Stage` copies have landed, for every thread of the group.
template <unsigned Stage, class Group>
void wait_prior(const Group& group, simt::Site site = simt::Site::here()) {
  simt::async_wait(Stage);
  group.sync(site);
}
template <class Group>
void wait(const Group& group, simt::Site site = simt::Site::here()) {
  wait_prior<0>(group, site);
}

}  // namespace cooperative_groups
