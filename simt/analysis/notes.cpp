// What device functions report of what they do for the student's line that called them (include/simt/analysis.h).
#include "simt/analysis.h"

#include "hooks.h"
#include "recorder.h"
#include "scheduler.h"
#include "written.h"

namespace simt {

using namespace analysis;

namespace {

bool is_running() { return worker && worker->lane && !is_telling; }

template <class Tell>
void tell_of_lane(Tell tell_one) {
  const WarpRef where = worker->where(*worker->lane->warp);
  tell([&](Observer& o) { tell_one(o, where, static_cast<unsigned>(worker->lane->number)); });
}

}  // namespace

void note_atomic(const volatile void* address, size_t size, Order order, Reach scope, Does does) noexcept {
  if (!is_running()) return;
  Access access;
  access.kind = does == Does::load ? Kind::load : does == Does::store ? Kind::store : Kind::atomic;
  access.is_volatile = does == Does::load || does == Does::store;
  access.overwrites = does == Does::store || does == Does::exchange;
  access.acquires = order == Order::acquire || order == Order::acquire_release;
  access.releases = does != Does::load && (order == Order::release || order == Order::acquire_release);
  access.of_block = scope == Reach::block;
  access.of_device = scope == Reach::device;
  report(*worker, calling_call(SIMT_CALL_HERE(*worker)).pc, address, size, access, size);
}

void note_result(const volatile void* address, uint64_t found, bool changed) {
  if (!is_running()) return;
  if (changed)
    worker->lane->idle = 0;
  else
    worker->polls(reinterpret_cast<uintptr_t>(address), found);
}

void note_store(const volatile void* address, size_t size) {
  if (is_running()) report(*worker, calling_call(SIMT_CALL_HERE(*worker)).pc, address, size, {Kind::store});
}

void note_fence(Reach reach) {
  if (!is_running()) return;
  SIMT_ENTER(*worker, fence);
  ++worker->lane->idle;
  const FenceScope scope = reach == Reach::block    ? FenceScope::block
                           : reach == Reach::device ? FenceScope::device
                                                    : FenceScope::system;
  tell_of_lane([&](Observer& o, WarpRef where, unsigned lane) { o.fenced(where, lane, scope); });
}

void note_release(const void* barrier) {
  if (!is_running()) return;
  SIMT_ENTER(*worker, other);
  tell_of_lane([&](Observer& o, WarpRef where, unsigned lane) { o.released(where, lane, barrier); });
}

void note_wait(const void*) {
  if (!is_running()) return;
  const Call call = calling_call(SIMT_CALL_HERE(*worker));
  worker->step(call.pc, call.frame, false);
}

void note_acquire(const void* barrier) {
  if (!is_running()) return;
  tell_of_lane([&](Observer& o, WarpRef where, unsigned lane) { o.acquired(where, lane, barrier); });
}

namespace {

template <class Tell>
void note_launch_order(Call here, Tell tell_one) {
  const Call call = calling_call(here);
  worker->step(call.pc, call.frame, false);  // what the lanes did before is told before
  tell_of_lane(tell_one);
}

}  // namespace

void note_wait_for_launch() {
  if (is_running())
    note_launch_order(SIMT_CALL_HERE(*worker),
                      [](Observer& o, WarpRef where, unsigned lane) { o.waited_for_launch(where, lane); });
}

void note_next_launch() {
  if (is_running())
    note_launch_order(SIMT_CALL_HERE(*worker),
                      [](Observer& o, WarpRef where, unsigned lane) { o.let_next_launch_start(where, lane); });
}

void note_copy(const void* destination, const void* source, size_t size, size_t zero_fill, bool is_async) {
  if (!is_running()) return;
  const Pc pc = calling_call(SIMT_CALL_HERE(*worker)).pc;
  Access access;
  access.is_async = is_async;
  report(*worker, pc, source, size - zero_fill, access);
  access.kind = Kind::store;
  report(*worker, pc, destination, size, access);
}

void note_landing(const void* destination, size_t size, const void* barrier) {
  if (!is_running()) return;
  tell_of_lane([&](Observer& o, WarpRef where, unsigned lane) { o.landed(where, lane, destination, size, barrier); });
}

}  // namespace simt

// --- Copies by the C library's functions, which the linker calls here instead ---------------------------------------

using namespace simt;

namespace {

void note_bytes(analysis::Call call, analysis::Kind kind, const void* address, size_t size) {
  if (const analysis::Pc pc = analysis::students_call(call).pc)
    analysis::report(*worker, pc, address, size, {kind});
  else if (kind == Kind::store)
    note_written(address, size);
}

}  // namespace

extern "C" {

void* __real_memcpy(void*, const void*, size_t);
void* __real_memmove(void*, const void*, size_t);
void* __real_memset(void*, int, size_t);

#define SIMT_NOTE_BYTES(kind, address) \
  if (is_running()) note_bytes(SIMT_CALL_HERE(*worker), analysis::Kind::kind, address, size)

void* __wrap_memcpy(void* to, const void* from, size_t size) {
  SIMT_NOTE_BYTES(load, from);
  SIMT_NOTE_BYTES(store, to);
  return __real_memcpy(to, from, size);
}
void* __wrap_memmove(void* to, const void* from, size_t size) {
  SIMT_NOTE_BYTES(load, from);
  SIMT_NOTE_BYTES(store, to);
  return __real_memmove(to, from, size);
}
void* __wrap_memset(void* to, int byte, size_t size) {
  SIMT_NOTE_BYTES(store, to);
  return __real_memset(to, byte, size);
}

}  // extern "C"
