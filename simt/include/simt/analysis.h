// What device functions report to the analysis of what they do for their callers. In an ordinary build, nothing.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace simt {

// Vector types have an assignment of their own in an analysis build.
#ifdef SIMT_ANALYSIS
template <class T>
constexpr bool is_copyable_by_bytes = std::is_trivially_copy_constructible_v<T>&& std::is_trivially_destructible_v<T>;
#else
template <class T>
constexpr bool is_copyable_by_bytes = std::is_trivially_copyable_v<T>;
#endif

namespace analysis {
// Barriers, shuffles and the like, as they are called by the lanes of one warp together.
enum class Operation : uint8_t {
  block_barrier,
  warp_sync,
  shuffle,
  vote,
  warp_reduce,
  cluster_arrive,
  cluster_wait,
  grid_barrier,
  fence,
  texture_read,
  other
};
}  // namespace analysis

enum class Does { load, store, exchange, update };  // an atomic
enum class Order { relaxed, acquire, release, acquire_release };
enum class Reach { block, device, system };  // of a fence, or the scope of an atomic

#ifdef SIMT_ANALYSIS

constexpr bool kAnalysis = true;

// Of a function: it belongs to the device. It is one step, and what it accesses is its own.
#define SIMT_OWN __attribute__((noinline, no_sanitize("thread"), no_sanitize_coverage))
// Of a function: what it accesses, the line of the caller accesses.
#define SIMT_FOR_CALLER __attribute__((always_inline))

// It throws nothing, so that the access follows in the same basic block even where objects with destructors live.
void note_atomic(const volatile void* address, size_t size, Order order, Reach scope, Does does) noexcept;
void note_result(const volatile void* address, uint64_t found, bool changed);  // of an atomic
void note_store(const volatile void* address, size_t size);
void note_fence(Reach reach);
// Of a barrier in memory: a lane arrives and lets go of what it wrote; it asks whether the phase has ended; it has, and
// the lane gets hold of what the others wrote.
void note_release(const void* barrier);
void note_wait(const void* barrier);
void note_acquire(const void* barrier);
// Of dependent launches: a lane has waited for the launch before, or lets the next one start.
void note_wait_for_launch();
void note_next_launch();
void note_copy(const void* destination, const void* source, size_t size, size_t zero_fill, bool is_async);
void note_landing(const void* destination, size_t size, const void* barrier);

#else

constexpr bool kAnalysis = false;
#define SIMT_OWN
#define SIMT_FOR_CALLER
inline void note_atomic(const volatile void*, size_t, Order, Reach, Does) {}
inline void note_result(const volatile void*, uint64_t, bool) {}
inline void note_store(const volatile void*, size_t) {}
inline void note_fence(Reach) {}
inline void note_release(const void*) {}
inline void note_wait(const void*) {}
inline void note_acquire(const void*) {}
inline void note_wait_for_launch() {}
inline void note_next_launch() {}
inline void note_copy(const void*, const void*, size_t, size_t, bool) {}
inline void note_landing(const void*, size_t, const void*) {}

#endif

}  // namespace simt
