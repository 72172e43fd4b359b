// The calls that the compiler puts into an analysis build: one before each access to memory (-fsanitize=thread) and one
// at each basic block (-fsanitize-coverage=trace-pc).
#include "hooks.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "in_flight.h"
#include "memory.h"
#include "places.h"
#include "recorder.h"
#include "scheduler.h"
#include "unread.h"

namespace simt::analysis {

namespace {

bool on_stack(const Worker& w, uintptr_t address) {
  return address - reinterpret_cast<uintptr_t>(w.lane->stack) < kStackSize;
}

// The allocation of the last access; none is freed while a kernel runs.
struct Remembered {
  uint64_t launch;
  Allocation allocation;
};
Remembered remembered[16];

bool is_within(const Allocation& a, uintptr_t address, size_t size) {
  return address >= a.begin && address + size <= a.begin + a.size;
}

// The live allocation that contains an access, or null.
const Allocation* allocation_of(const Worker& w, Pc pc, uintptr_t address, size_t size) {
  Remembered& last = remembered[pc % 16];
  if (last.launch == w.launch->id && is_within(last.allocation, address, size)) return &last.allocation;
  Allocation found;
  if (!find_allocation(reinterpret_cast<const void*>(address), found) || !is_within(found, address, size))
    return nullptr;
  last = {w.launch->id, found};
  return &last.allocation;
}

// Whether an access reads bytes of which none has been written: what holds another value than the filling has been.
// Afterwards, those that it writes have been.
bool reads_unwritten(const Allocation& a, uintptr_t address, size_t size, const Access& access) {
  if (!a.written) return false;
  const size_t begin = address - a.begin, end = begin + size;
  const auto* bytes = reinterpret_cast<const unsigned char*>(address);
  const bool reads = access.kind != Kind::store && !access.overwrites;
  const bool is_unwritten = reads && std::all_of(bytes, bytes + size, [](unsigned char b) { return b == kPoison; }) &&
                            a.written->has_none_of(begin, end);
  if (access.kind != Kind::load) a.written->add(begin, end);
  return is_unwritten;
}

// Of an access that leaves an allocation.
const void* first_outside(const void* pointer, size_t size) {
  Allocation found;
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  if (!find_allocation(pointer, found) || address >= found.begin + found.size) return pointer;
  return reinterpret_cast<const void*>(std::min(found.begin + found.size, address + size));
}

std::string hexadecimal(uintptr_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%zx", static_cast<size_t>(address));
  return text;
}

std::string what_it_does(const Access& access) {
  return access.kind == Kind::load ? "reads" : access.kind == Kind::store ? "writes" : "updates";
}

// The space of an address, and what else its place says of the event; false if the analysis ignores accesses there.
// Ends the kernel if the access is wrong.
bool check(Worker& w, Pc pc, uintptr_t address, size_t size, const Access& access, size_t alignment, Event& event) {
  Space& space = event.space;
  const void* pointer = reinterpret_cast<const void*>(address);
  if (const char* arena = w.arena_at(address)) {
    space = Space::shared;
    const size_t used = w.launch->shared_used, offset = address - reinterpret_cast<uintptr_t>(arena);
    if (offset + size > used)
      w.fail_at(cudaErrorIllegalAddress, pc, FaultKind::out_of_shared,
                "the thread " + what_it_does(access) + " " + std::to_string(size) + " bytes at byte " +
                    std::to_string(offset) + " of its block's shared memory, which has " + std::to_string(used));
  } else if (in_device_space(pointer)) {
    space = Space::global;
    const Allocation* allocation = allocation_of(w, pc, address, size);
    if (!allocation)
      w.fail_at(cudaErrorIllegalAddress, pc, FaultKind::out_of_bounds,
                "illegal memory access: the thread " + what_it_does(access) + " " + std::to_string(size) +
                    " bytes at " + hexadecimal(address) + ", " + describe_address(first_outside(pointer, size)));
    if (w.launch->takes_turns)
      if (const std::string missing = missing_access(pointer, w.launch->device); !missing.empty())
        w.fail_at(cudaErrorIllegalAddress, pc, FaultKind::out_of_bounds,
                  "illegal memory access: the thread " + what_it_does(access) + " " + std::to_string(size) +
                      " bytes at " + hexadecimal(address) + ": " + missing);
    event.is_unwritten = reads_unwritten(*allocation, address, size, access);
  } else if (is_program_data(address)) {
    space = Space::global;
    Variable variable;
    if (!find_variable(address, variable)) return false;
  } else {
    Allocation found;  // registered host memory
    if (!find_allocation(pointer, found)) return false;
    space = Space::global;
  }
  if (alignment > 1 && address % alignment)
    w.fail_at(cudaErrorMisalignedAddress, pc, FaultKind::misaligned,
              "misaligned address " + hexadecimal(address) + ": an access of " + std::to_string(size) +
                  " bytes needs a multiple of " + std::to_string(std::max(alignment, size == 16 ? size : 0)));
  return true;
}

// The largest access that an address and a size allow.
uint32_t piece_of(uintptr_t address, size_t size, size_t largest) {
  const uintptr_t bits = address | size | largest;
  return static_cast<uint32_t>(bits & -bits);
}

void hook(Worker& w, Call call, const volatile void* pointer, size_t size, const Access& access, size_t alignment = 0) {
  if (is_telling || on_stack(w, reinterpret_cast<uintptr_t>(pointer))) return;
  if (const Pc pc = students_call(call).pc)
    report(w, pc, pointer, size, access, alignment);
  else if (access.kind != Kind::load)  // an algorithm of Thrust or CUB
    note_written(const_cast<const void*>(pointer), size);
}

void host_uses(const void* address, const Access& access, Pc pc) {
  const Place place = students_place(pc - 1);
  if (place.file.empty()) return;
  const std::string wrong = unsafe_access(address, access.is_volatile && access.kind == Kind::load);
  if (!wrong.empty()) say(place.file + ":" + std::to_string(place.line) + ": " + wrong);
}

}  // namespace

void report(Worker& w, Pc pc, const volatile void* pointer, size_t size, const Access& access, size_t alignment) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  Event event;
  if (!size || !check(w, pc, address, size, access, alignment, event)) return;
  static_cast<Access&>(event) = access;
  event.pc = pc;
  event.address = address;
  event.size = static_cast<uint32_t>(size);
  Recorder& r = recorder();
  if (access.is_async || (alignment && address % size == 0)) {
    r.record(w.lane->number, event);
  } else {  // the compiler does not know it as one access: take the largest possible one
    const bool is_power = !(size & (size - 1)) && size <= kLargestAccess;
    event.size = alignment ? static_cast<uint32_t>(alignment)
                           : piece_of(address, size, is_power ? std::min<size_t>(size / 2, 4) : kLargestAccess);
    event.size = std::max(event.size, 1u);
    for (; event.address < address + size; event.address += event.size) r.record(w.lane->number, event);
  }
  if (access.kind == Kind::load && access.is_volatile && size <= 8) {
    uint64_t value = 0;
    std::memcpy(&value, const_cast<const void*>(pointer), size);
    w.polls(address, value);
  } else if (access.kind == Kind::store) {
    w.lane->idle = 0;
  }
}

Named name_of(uintptr_t address) {
  const void* pointer = reinterpret_cast<const void*>(address);
  if (worker) {
    if (const char* arena = worker->arena_at(address)) return worker->shared_variable_at(arena, address);
  }
  Allocation found;
  if (find_allocation(pointer, found)) {
    const bool of_device = several_devices() && found.kind == MemoryKind::device;
    return {std::string(found.made_by) + " of " + std::to_string(found.size) + " bytes" +
                (of_device ? " on device " + std::to_string(found.device) : ""),
            found.begin};
  }
  Variable variable;
  if (is_program_data(address) && find_variable(address, variable)) return {variable.name, variable.begin};
  return {"", 0};
}

std::string variable_text(uintptr_t address) {
  const Named named = name_of(address);
  if (!named.begin) return "";
  return named.base + " + " + std::to_string(address - named.begin) + " bytes";
}

}  // namespace simt::analysis

using namespace simt;
using namespace simt::analysis;

#define SIMT_HOOK __attribute__((noinline, no_sanitize("thread"), no_sanitize_coverage)) void

extern "C" {

SIMT_HOOK __sanitizer_cov_trace_pc() {
  Worker* w = worker;
  if (!w || !w->lane || is_telling) return;
  hooks_ran = true;
  const uintptr_t pc = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  if (owner_of(pc) != Owner::student) return;
  w->step(pc, __builtin_frame_address(0), true);
}

#define SIMT_ACCESS(name, size, alignment, ...)                                                         \
  SIMT_HOOK name(void* address) {                                                                       \
    if (Worker* w = worker; w && w->lane)                                                               \
      hook(*w, SIMT_CALL_HERE(*w), address, size, Access __VA_ARGS__, alignment);                       \
    else if (!w && is_in_flight)                                                                        \
      host_uses(address, Access __VA_ARGS__, reinterpret_cast<uintptr_t>(__builtin_return_address(0))); \
  }
#define SIMT_ACCESSES(size, alignment)                                         \
  SIMT_ACCESS(__tsan_read##size, size, alignment, {Kind::load})                \
  SIMT_ACCESS(__tsan_write##size, size, alignment, {Kind::store})              \
  SIMT_ACCESS(__tsan_volatile_read##size, size, alignment, {Kind::load, true}) \
  SIMT_ACCESS(__tsan_volatile_write##size, size, alignment, {Kind::store, true})
SIMT_ACCESSES(1, 1)
SIMT_ACCESSES(2, 2)
SIMT_ACCESSES(4, 4)
SIMT_ACCESSES(8, 8)
SIMT_ACCESSES(16, 8)  // gcc calls these for a struct of two doubles as well

#define SIMT_UNALIGNED(size)                                                     \
  SIMT_ACCESS(__tsan_unaligned_read##size, size, 0, {Kind::load})                \
  SIMT_ACCESS(__tsan_unaligned_write##size, size, 0, {Kind::store})              \
  SIMT_ACCESS(__tsan_unaligned_volatile_read##size, size, 0, {Kind::load, true}) \
  SIMT_ACCESS(__tsan_unaligned_volatile_write##size, size, 0, {Kind::store, true})
SIMT_UNALIGNED(2)
SIMT_UNALIGNED(4)
SIMT_UNALIGNED(8)
SIMT_UNALIGNED(16)

SIMT_HOOK __tsan_read_range(void* address, size_t size) {
  if (Worker* w = worker; w && w->lane) hook(*w, SIMT_CALL_HERE(*w), address, size, {Kind::load});
}
SIMT_HOOK __tsan_write_range(void* address, size_t size) {
  if (Worker* w = worker; w && w->lane) hook(*w, SIMT_CALL_HERE(*w), address, size, {Kind::store});
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}

}  // extern "C"

// What g++ calls before an index leaves an array whose size it knows (-fsanitize=bounds).
struct ArrayAccess {
  const char* file;
  unsigned line, column;
  const struct TypeDescriptor {
    uint16_t kind, info;
    char name[];  // quoted
  } * array, *index;
};
extern "C" SIMT_HOOK __ubsan_handle_out_of_bounds(const ArrayAccess* access, uintptr_t value) {
  Worker* w = worker;
  if (!w || !w->in_kernel || !w->lane || is_telling) return;
  const unsigned unused = 64 - std::min(64u, 1u << (access->index->info >> 1));
  const bool is_signed = access->index->info & 1;
  const std::string index = is_signed ? std::to_string(static_cast<int64_t>(value << unused) >> unused)
                                      : std::to_string(static_cast<uint64_t>(value));
  w->fail_at(cudaErrorIllegalAddress, reinterpret_cast<uintptr_t>(__builtin_return_address(0)), FaultKind::out_of_array,
             "the index " + index + " is outside the array of type " + access->array->name);
}

// What kernels print, which a GPU shows when the host waits for them (-Wl,--wrap).
namespace {
void note_printing() {
  if (Worker* w = worker; w && w->lane) printed_in_flight = true;
}
}  // namespace
extern "C" {
int __real_puts(const char* text);
int __real_putchar(int character);
int __wrap_puts(const char* text) {
  note_printing();
  return __real_puts(text);
}
int __wrap_putchar(int character) {
  note_printing();
  return __real_putchar(character);
}
int __wrap_vprintf(const char* format, va_list arguments) {
  note_printing();
  return vfprintf(stdout, format, arguments);
}
int __wrap_printf(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int count = __wrap_vprintf(format, arguments);
  va_end(arguments);
  return count;
}
}  // extern "C"
