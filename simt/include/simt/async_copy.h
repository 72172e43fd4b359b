// What all forms of asynchronous copies share: checks, and how a group divides a copy among its threads.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "atomic.h"
#include "core.h"
#include "driver_types.h"

namespace cuda {

// A size in bytes with a promise: both pointers and the size are multiples of Alignment.
template <std::size_t Alignment>
struct aligned_size_t {
  static_assert(Alignment > 0 && (Alignment & (Alignment - 1)) == 0, "an alignment is a power of two");
  static constexpr std::size_t align = Alignment;
  std::size_t value;
  constexpr explicit aligned_size_t(std::size_t size) : value(size) {}
  constexpr operator std::size_t() const { return value; }
};

}  // namespace cuda

namespace simt {

template <class Size>
constexpr size_t promised_alignment = 1;
template <size_t alignment>
constexpr size_t promised_alignment<cuda::aligned_size_t<alignment>> = alignment;

template <class T>
constexpr size_t alignment_of = alignof(T);
template <>
inline constexpr size_t alignment_of<void> = 1;
template <>
inline constexpr size_t alignment_of<const void> = 1;

inline void check_alignment(const void* destination, const void* source, size_t size, size_t alignment, Site site) {
  if (((reinterpret_cast<uintptr_t>(destination) | reinterpret_cast<uintptr_t>(source)) & (alignment - 1)) != 0)
    device_fault(cudaErrorMisalignedAddress,
                 "an address of the asynchronous copy is not aligned as its type or size promises", site);
  if (size % alignment != 0)
    device_fault(cudaErrorMisalignedAddress, "the size of the asynchronous copy is not a multiple of its alignment",
                 site);
}

// Only copies from global to shared memory are asynchronous; all others are done at once.
inline bool is_asynchronous(const void* destination, const void* source) {
  return is_shared(destination) && !is_shared(source);
}

// One thread by itself, where CUDA asks for a group.
struct SingleThread {
  static unsigned thread_rank() { return 0; }
  static unsigned num_threads() { return 1; }
};

// Each thread of the group copies every n-th piece of 16 bytes: copy(destination, source, size) starts one, unless the
// copy cannot be asynchronous.
template <class Group, class Copy>
void divide_copy(const Group& group, void* destination, const void* source, size_t size, Copy copy) {
  constexpr size_t kPiece = 16;
  const bool asynchronous = is_asynchronous(destination, source);
  char* to = static_cast<char*>(destination);
  const char* from = static_cast<const char*>(source);
  for (size_t at = kPiece * group.thread_rank(); at < size; at += kPiece * group.num_threads()) {
    const size_t piece = std::min(kPiece, size - at);
    if (asynchronous) {
      copy(to + at, from + at, piece);
    } else {
      note_copy(to + at, from + at, piece, 0, false);
      std::memcpy(to + at, from + at, piece);
    }
  }
}

}  // namespace simt
