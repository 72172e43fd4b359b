#include "written.h"

#include <algorithm>
#include <cstring>

#include "memory.h"

namespace simt {

bool tracks_writes = false;
std::atomic<unsigned> Written::now_{0};

std::shared_ptr<Written> Written::none_of(size_t size) {
  return std::shared_ptr<Written>(tracks_writes ? new Written(size) : nullptr);
}

// Copies on several devices may write the bytes of one octet at once.
void Written::add(size_t begin, size_t end) {
  const auto set = [&](size_t byte) {
    __atomic_fetch_or(&bits_[byte / 8], static_cast<uint8_t>(1u << byte % 8), __ATOMIC_RELAXED);
  };
  for (; begin < end && begin % 8; ++begin) set(begin);
  for (; begin < end && end % 8; --end) set(end - 1);
  if (begin < end) std::memset(&bits_[begin / 8], 0xFF, (end - begin) / 8);
}

bool Written::has_none_of(size_t begin, size_t end) const {
  if (era_ != now_) return false;
  for (; begin < end; ++begin)
    if (bits_[begin / 8] >> begin % 8 & 1) return false;
  return true;
}

void note_written(const void* pointer, size_t size) {
  Allocation a;
  // The runtime's own copies, made where no allocation can be asked for, go elsewhere.
  if (!tracks_writes || !in_device_space(pointer) || !find_allocation(pointer, a) || !a.written) return;
  const size_t begin = reinterpret_cast<uintptr_t>(pointer) - a.begin;
  a.written->add(begin, begin + std::min(size, a.size - begin));
}

void forget_unwritten() { ++Written::now_; }

}  // namespace simt
