// The barrier in memory behind cuda::barrier, block-wide cuda::pipeline and __mbarrier_t: one 64-bit word, as on the
// GPU. A phase ends when all expected threads have arrived and all expected bytes have landed.
#pragma once
#include <cstdio>
#include <unordered_map>
#include <vector>

#include "async_copy.h"
#include "core.h"
#include "driver_types.h"
#include "warp.h"

namespace simt {

// A tensor map's swizzle: bits 7 to 9 of a shared address change bits 4 to 6, as far as the mask has them.
template <class T>
SIMT_OWN T* swizzled(T* address, uintptr_t mask) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return reinterpret_cast<T*>(bits ^ (bits >> 3 & mask));
}

// A copy that is done when a thread waits for the phase it was issued in.
struct DeferredCopy {
  void* destination;
  const void* source;
  size_t size;
  unsigned phase;
  bool counted;                  // its bytes are among those the barrier expects
  size_t begin = 0, end = size;  // the bytes of the destination that the source has; the others become zeros
  uintptr_t swizzle = 0;

  SIMT_OWN void move() const {
    if (swizzle == 0 && begin == 0 && end == size) {
      std::memcpy(destination, source, size);
      return;
    }
    for (size_t at = 0; at < size; at += 16) {
      char* to = swizzled(static_cast<char*>(destination) + at, swizzle);
      const size_t first = at < begin ? begin : at, last = end < at + 16 ? end : at + 16;
      std::memset(to, 0, 16);
      if (first < last)
        std::memcpy(to + (first - at), static_cast<const char*>(source) + (first - begin), last - first);
    }
  }
};

class Mbarrier {
 public:
  static constexpr uint32_t kMaxCount = (1 << 20) - 1;

  SIMT_OWN void init(int64_t count, Site site = Site::here()) {
    if (count < 0 || count > kMaxCount)
      device_fault(cudaErrorLaunchFailure, "a barrier counts 0 to 1048575 threads", site);
    deferred().erase(this);
    store({static_cast<uint64_t>(count), static_cast<uint64_t>(count), 0, 0});
  }

  SIMT_OWN void invalidate() {
    deferred().erase(this);
    __atomic_store_n(&word_, ~static_cast<uint64_t>(0), __ATOMIC_SEQ_CST);
  }

  // Returns the phase arrived in; complete() runs before the phase ends, in the last to arrive.
  template <class Complete>
  SIMT_OWN unsigned arrive(int64_t threads, int64_t dropped, int64_t bytes, Site site, Complete complete) {
    if (threads > 0) note_release(this);
    begin_atomic(&word_, sizeof(word_), site);
    uint64_t word = __atomic_load_n(&word_, __ATOMIC_SEQ_CST);
    for (;;) {
      State next = from_word<State>(word);
      if (word == ~static_cast<uint64_t>(0))
        device_fault(cudaErrorLaunchFailure, "the barrier was not initialized", site);
      if (threads < 0 || threads > static_cast<int64_t>(next.pending))
        device_fault(cudaErrorLaunchFailure, "more threads arrive at the barrier than it was initialized for", site);
      next.pending -= static_cast<uint64_t>(threads);
      next.expected -= static_cast<uint64_t>(dropped);
      next.bytes += bytes;
      if (!__atomic_compare_exchange_n(&word_, &word, to_word(next), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
        continue;
      const unsigned phase = static_cast<unsigned>(next.phase);
      if (next.pending == 0 && next.bytes == 0) {
        complete();
        next.pending = next.expected;
        ++next.phase;
        store(next);
      }
      return phase;
    }
  }
  unsigned arrive(int64_t threads, Site site) {
    return arrive(threads, 0, 0, site, [] {});
  }

  // For a loop that polls until the phase has ended: while it has not, the other lanes run first.
  SIMT_OWN bool test(unsigned phase, unsigned mask, Site site) {
    note_wait(this);
    if (__atomic_load_n(&word_, __ATOMIC_SEQ_CST) == ~static_cast<uint64_t>(0))
      device_fault(cudaErrorLaunchFailure, "the barrier was not initialized", site);
    const bool ended = has_ended(phase, mask, site);
    note_polling(ended ? nullptr : describe, this, site);
    if (ended)
      note_acquire(this);
    else
      yield();
    return ended;
  }
  SIMT_OWN void wait(unsigned phase, unsigned mask, Site site) {
    while (!test(phase, mask, site)) {
    }
  }

  // The copy is done at the wait for the current phase.
  SIMT_OWN void defer(void* destination, const void* source, size_t size, bool counted = false) {
    note_copy(destination, source, size, 0, true);
    defer({destination, source, size, static_cast<unsigned>(load().phase), counted});
  }
  // A row of a tensor copy's box: bytes [begin, end) are copied, the others filled with zeros.
  SIMT_OWN void defer_row(void* destination, const void* source, size_t size, size_t begin, size_t end,
                          uintptr_t swizzle) {
    note_copy(destination, source, size, size - (end - begin), true);
    const auto phase = static_cast<unsigned>(load().phase);
    defer({destination, source, size, phase, true, begin, end, swizzle});
  }

 private:
  SIMT_OWN void defer(const DeferredCopy& copy) {
    if (copies_land_early()) copy.move();
    deferred()[this].push_back(copy);
  }

  struct State {
    uint64_t pending : 20, expected : 20;
    int64_t bytes : 21;  // expected, less those landed
    uint64_t phase : 3;
  };

  State load() const { return from_word<State>(__atomic_load_n(&word_, __ATOMIC_SEQ_CST)); }
  void store(State state) { __atomic_store_n(&word_, to_word(state), __ATOMIC_SEQ_CST); }

  // Whether the phase has ended; if so, its copies have landed. Phases are compared under `mask`: 7, or 1 for a parity.
  bool has_ended(unsigned phase, unsigned mask, Site site) {
    State state = load();
    if (((state.phase ^ phase) & mask) == 0 && state.pending == 0) {
      if (const int64_t bytes = land([](const DeferredCopy& copy) { return copy.counted; })) {
        arrive(0, 0, -bytes, site, [] {});
        state = load();
      }
    }
    if (((state.phase ^ phase) & mask) == 0) return false;
    land([&](const DeferredCopy& copy) { return !copy.counted && copy.phase != state.phase; });
    return true;
  }

  // Of a phase that has not ended.
  static void describe(const void* barrier, char* text, size_t size) {
    const State state = static_cast<const Mbarrier*>(barrier)->load();
    const auto expected = static_cast<unsigned>(state.expected),
               arrived = expected - static_cast<unsigned>(state.pending);
    std::snprintf(text, size,
                  "waits for the end of a phase of parity %u of a barrier in memory, at which %u of %u threads have "
                  "arrived and %ld bytes are still expected",
                  static_cast<unsigned>(state.phase & 1), arrived, expected, static_cast<long>(state.bytes));
  }

  // By barrier. A block, and therefore the shared memory to which copies go, belongs to one worker thread.
  static std::unordered_map<const Mbarrier*, std::vector<DeferredCopy>>& deferred() {
    static thread_local std::unordered_map<const Mbarrier*, std::vector<DeferredCopy>> copies;
    return copies;
  }

  template <class Condition>
  int64_t land(Condition condition) {
    const auto found = deferred().find(this);
    if (found == deferred().end()) return 0;
    int64_t bytes = 0;
    std::vector<DeferredCopy> left;
    for (const DeferredCopy& copy : found->second) {
      if (condition(copy)) {
        if (!copies_land_early()) copy.move();
        note_landing(copy.destination, copy.size, this);
        bytes += static_cast<int64_t>(copy.size);
      } else {
        left.push_back(copy);
      }
    }
    if (left.empty())
      deferred().erase(found);
    else
      found->second = std::move(left);
    return bytes;
  }

  uint64_t word_;
};

}  // namespace simt
