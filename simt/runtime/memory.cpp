#include "memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "capacity.h"
#include "fault.h"
#include "unread.h"

// __managed__ variables are in a section of this name.
extern "C" __attribute__((weak)) char __start_simt_managed[], __stop_simt_managed[];

namespace simt {

namespace {

constexpr size_t kAlignment = 256;                      // of every allocation
constexpr size_t kHuge = static_cast<size_t>(2) << 20;  // a huge page
constexpr size_t kLarge = 2 * kHuge;                    // allocations of this size get huge pages
constexpr size_t kPoisonLimit = static_cast<size_t>(1)
                                << 30;  // larger allocations stay untouched zero pages until used
constexpr size_t kSmallestGap = 64 << 10, kLargestGap = 64 << 20;  // between allocations
constexpr size_t kSmallestSpace = 16 << 20;
constexpr size_t kRemembered = 4096;        // freed allocations that reports can still name
constexpr double kProtectionBudget = 0.02;  // seconds

size_t page_size() {
  static const size_t size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

constexpr size_t round_up(size_t value, size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

struct Pages {
  uintptr_t begin, end;
};
Pages pages_of(const Allocation& a) {
  return {a.begin / page_size() * page_size(), a.begin + round_up(a.size, kAlignment)};  // the end is a page's end
}

bool set_access(Pages pages, int protection) {
  return mprotect(reinterpret_cast<void*>(pages.begin), pages.end - pages.begin, protection) == 0;
}

struct Space {
  uintptr_t base = 0, next = 0, end = 0;
  std::map<uintptr_t, Allocation> live, foreign;
  std::deque<Allocation> freed;
  size_t largest_gap = kLargestGap;
  size_t credit = 0;  // bytes to hand out before the machine is asked again for its free memory
  std::mutex mutex;   // the fault handler of a worker reads while the launching thread holds api_mutex()

  // Protection against host code; guarded by api_mutex().
  bool protecting = true;
  unsigned open = 0;
  DeviceSet reach = 0;  // with several devices, those whose memory is open
  double spent = 0;

  Space() {
    install_fault_handlers();
    // Where the address space is limited, the program and its workers get a third of it; with several devices, whose
    // resident threads are all there at once, half.
    const size_t left = address_space(), others = std::max(left / (several_devices() ? 2 : 3), kWorkerSpace);
    const size_t most = left > others ? std::min(static_cast<size_t>(1) << 44, (left - others) / kHuge * kHuge) : 0;
    for (size_t size = most; size >= kSmallestSpace; size = size / 2 / kHuge * kHuge) {
      void* range = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED) continue;
      base = reinterpret_cast<uintptr_t>(range);
      end = base + size;
      next = base + kSmallestGap;
      largest_gap = std::clamp(size / 256, kSmallestGap, kLargestGap);
      return;
    }
    std::fprintf(stderr, "simt: the CPU device needs %zu MiB of address space, and %zu MiB are left: raise ulimit -v\n",
                 (kWorkerSpace + kSmallestSpace) >> 20, left >> 20);
  }
};

Space& space() {
  static auto* space = new Space;  // outlives the objects that free device memory at exit
  return *space;
}

void poison(uintptr_t begin, uintptr_t end) { std::memset(reinterpret_cast<void*>(begin), kPoison, end - begin); }

// Page faults cost more than the writing: several threads take them.
void poison_all(Pages pages) {
  constexpr size_t kPerThread = 32 << 20;
  const size_t size = pages.end - pages.begin;
  const size_t threads = std::min<size_t>(size / kPerThread, std::min(std::thread::hardware_concurrency(), 8u));
  const size_t chunk = threads ? round_up(size / threads, kHuge) : size;
  std::vector<std::thread> others;
  uintptr_t begin = pages.begin;
  for (size_t i = 1; i < threads; ++i, begin += chunk) {
    try {
      others.emplace_back(poison, begin, begin + chunk);
    } catch (const std::system_error&) {  // no more threads: the rest is done here
      break;
    }
  }
  poison(begin, pages.end);
  for (std::thread& other : others) other.join();
}

// The bytes beside an allocation that belong to none: some before it on its first page, and up to 255 past its end.
Pages guard_before(const Allocation& a) { return {std::max(pages_of(a).begin, a.begin - kAlignment), a.begin}; }
Pages guard_behind(const Allocation& a) { return {a.begin + a.size, a.begin + round_up(a.size, kAlignment)}; }

// What stands there. Arithmetic leaves the bits of a NaN as they are, but it makes a signalling NaN a quiet one, and an
// element just past either end is signalling as a float, a double (past the end only) and a half; its lowest byte is no
// limit of integers either.
constexpr unsigned char kGuardBehind[8] = {0xB5, 0xFD, 0xBF, 0xFF, 0xB5, 0xFD, 0xF7, 0xFF};
constexpr unsigned char kGuardBefore[4] = {0xB5, 0xFD, 0xBF, 0xFF};

struct Guards {
  std::string before, behind;  // of the largest size
  Guards() {
    for (size_t i = 0; i < kAlignment; ++i) {
      before += static_cast<char>(kGuardBefore[i % sizeof kGuardBefore]);
      behind += static_cast<char>(kGuardBehind[i % sizeof kGuardBehind]);
    }
  }
};

// The bytes that a guard has while nothing overwrites it.
const char* bytes_of(Pages guard, const Allocation& a) {
  static const Guards guards;
  if (guard.begin >= a.begin) return guards.behind.data();
  return guards.before.data() + (kAlignment - (guard.end - guard.begin));
}

void fill_guards(const Allocation& a) {
  for (const Pages guard : {guard_before(a), guard_behind(a)})
    std::memcpy(reinterpret_cast<void*>(guard.begin), bytes_of(guard, a), guard.end - guard.begin);
}

uintptr_t first_overwritten(Pages guard, const Allocation& a) {
  const auto* bytes = reinterpret_cast<const char*>(guard.begin);
  const char* expected = bytes_of(guard, a);
  const size_t size = guard.end - guard.begin;
  if (!std::memcmp(bytes, expected, size)) return guard.end;
  // Arithmetic may change an element's last bytes only: the report names the word.
  const auto at = static_cast<size_t>(std::mismatch(bytes, bytes + size, expected).first - bytes);
  return guard.begin + (guard.begin >= a.begin ? at / 4 * 4 : at);
}

std::string bytes(size_t count) { return std::to_string(count) + (count == 1 ? " byte" : " bytes"); }

size_t distance(const Allocation& a, uintptr_t address) {
  if (address < a.begin) return a.begin - address;
  return address < a.begin + a.size ? 0 : address - (a.begin + a.size) + 1;
}

std::string describe(const Allocation& a, uintptr_t address, bool freed) {
  const bool of_device = several_devices() && a.kind == MemoryKind::device;
  const std::string name = std::string(freed ? "a freed " : "a ") + std::to_string(a.size) + "-byte allocation (" +
                           a.made_by + (of_device ? " on device " + std::to_string(a.device) : "") + ")";
  if (address < a.begin) return bytes(a.begin - address) + " before the start of " + name;
  const size_t past = distance(a, address);
  if (past > 1) return bytes(past - 1) + " past the end of " + name;
  return (past == 1 ? "just past the end of " : "inside ") + name;
}

const Allocation* containing(const std::map<uintptr_t, Allocation>& ranges, uintptr_t address) {
  auto found = ranges.upper_bound(address);
  if (found == ranges.begin()) return nullptr;
  const Allocation& a = (--found)->second;
  return address <= a.begin + a.size ? &a : nullptr;
}

// Bytes of a large allocation that were promised and have no memory yet.
size_t untouched(const Allocation& a) {
  if (a.size <= kPoisonLimit) return 0;
  const Pages pages = pages_of(a);
  std::vector<unsigned char> resident(static_cast<size_t>(1) << 16);
  size_t absent = 0;
  for (uintptr_t at = pages.begin; at < pages.end; at += resident.size() * page_size()) {
    const size_t count = std::min((pages.end - at) / page_size(), resident.size());
    if (mincore(reinterpret_cast<void*>(at), count * page_size(), resident.data()) != 0) continue;
    for (size_t i = 0; i < count; ++i) absent += !(resident[i] & 1);
  }
  return absent * page_size();
}

bool is_readable(const void* pointer) {
  // The kernel reads the set before it refuses the first argument: EFAULT means that the address cannot be read.
  const int saved = errno;
  syscall(SYS_rt_sigprocmask, ~0, reinterpret_cast<uintptr_t>(pointer) & ~static_cast<uintptr_t>(7), nullptr, 8);
  const bool readable = errno != EFAULT;
  errno = saved;
  return readable;
}

// The host may use at least this much besides the device.
size_t reserve() { return std::min<size_t>(total_memory() / 16, static_cast<size_t>(512) << 20); }

// The kernel limits the number of mappings of a process; an allocation is one, and the gap after it another.
size_t allocation_limit() {
  static const size_t limit = [] {
    std::ifstream file("/proc/sys/vm/max_map_count");
    size_t mappings = 0;
    return file >> mappings && mappings > 8192 ? mappings / 2 - 4096 : static_cast<size_t>(1024);
  }();
  return limit;
}

// Where an allocation goes, or 0: past all others, so that no address is used twice; if such a place does not exist, as
// in a small space, between those that live.
uintptr_t place_for(const Space& s, size_t mapped, size_t gap) {
  const size_t alignment = mapped >= kLarge ? kHuge : page_size();
  const auto is_free = [&](uintptr_t start, uintptr_t end) { return start + mapped + gap <= end; };
  uintptr_t start = round_up(s.next, alignment);
  if (is_free(start, s.end)) return start;
  start = round_up(s.base + kSmallestGap, alignment);
  for (const auto& [begin, a] : s.live) {
    if (is_free(start, pages_of(a).begin)) return start;
    start = round_up(pages_of(a).end + gap, alignment);
  }
  return is_free(start, s.end) ? start : 0;
}

bool fits(Space& s, size_t size) {
  constexpr size_t kCredit = 16 << 20;
  if (size > s.credit) {
    const size_t free = free_memory();
    if (size > free) return false;
    s.credit = std::min(free - size, kCredit);
  } else {
    s.credit -= size;
  }
  return true;
}

double thread_seconds() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

bool is_open(const Space& s, const Allocation& a) {
  if (a.kind != MemoryKind::device) return true;
  if (!several_devices()) return s.open || !s.protecting;
  return a.symmetric ? s.reach != 0 : s.reach >> a.device & 1;
}

void set_all(const Space& s, int protection) {
  for (const auto& [begin, a] : s.live)
    if (a.kind == MemoryKind::device) set_access(pages_of(a), protection);
}

// Accounts the time that protection takes. When it has used up its budget, device memory stays open: a program with
// many allocations and thousands of launches is not slowed down for a check that it has passed many times.
class Accounted {
 public:
  explicit Accounted(Space& s) : s_(s), start_(thread_seconds()) {}
  ~Accounted() {
    s_.spent += thread_seconds() - start_;
    if (s_.spent < kProtectionBudget || !s_.protecting) return;
    s_.protecting = false;
    set_all(s_, PROT_READ | PROT_WRITE);
  }

 private:
  Space& s_;
  const double start_;
};

}  // namespace

size_t total_memory() {
  static const size_t total =
      std::min(host_capacity().total, space().end - space().base) / static_cast<size_t>(device_count());
  return total;
}

size_t free_memory() {
  size_t taken = reserve();
  size_t room = space().end - space().base, of_device = total_memory() - total_memory() / 64;
  for (const auto& [begin, a] : space().live) {
    taken += untouched(a);
    room -= std::min(room, a.size);
    if (a.kind == MemoryKind::device && a.device == current_device()) of_device -= std::min(of_device, a.size);
  }
  const size_t now = host_capacity().free;
  return std::min({room, of_device, now > taken ? now - taken : 0});
}

size_t allocated_with(unsigned pool) {
  size_t sum = 0;
  for (const auto& [begin, a] : space().live)
    if (a.kind == MemoryKind::device && a.flags == pool) sum += a.size;
  return sum;
}

cudaError_t allocate(void** pointer, size_t size, MemoryKind kind, const char* made_by, unsigned flags,
                     bool symmetric) {
  Space& s = space();
  if (size > s.end - s.base) return cudaErrorMemoryAllocation;
  const size_t padded = round_up(size, symmetric ? page_size() : kAlignment), mapped = round_up(padded, page_size());
  const size_t gap = std::clamp(mapped, kSmallestGap, s.largest_gap);
  const uintptr_t start = place_for(s, mapped, gap);
  if (!start || s.live.size() >= allocation_limit() || !fits(s, mapped)) return cudaErrorMemoryAllocation;
  Allocation a{start + mapped - padded, size, kind, made_by, flags, current_device(), symmetric};
  const Pages pages = pages_of(a);
  if (!set_access(pages, PROT_READ | PROT_WRITE)) return cudaErrorMemoryAllocation;
  if (mapped >= kLarge) madvise(reinterpret_cast<void*>(start), mapped, MADV_HUGEPAGE);
  if (kind != MemoryKind::managed && size <= kPoisonLimit) {  // managed memory is zero, as from any operating system
    poison_all(pages);                                        // nothing reads zeros by luck
    if (kind == MemoryKind::device) a.written = Written::none_of(size);
  } else {
    poison(pages.begin, a.begin);
    poison(a.begin + size, pages.end);
  }
  fill_guards(a);
  std::lock_guard<std::mutex> lock(s.mutex);
  s.next = std::max(s.next, round_up(pages.end + gap, page_size()));
  s.live.emplace(a.begin, a);
  if (several_devices()) {
    if (!is_open(s, a)) set_access(pages, PROT_NONE);
  } else if (kind == MemoryKind::device && s.protecting && !s.open) {
    const Accounted accounted(s);
    set_access(pages, PROT_NONE);
  }
  *pointer = reinterpret_cast<void*>(a.begin);
  return cudaSuccess;
}

bool release(uintptr_t begin) {
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  const auto found = s.live.find(begin);
  if (found == s.live.end()) return false;
  const Pages pages = pages_of(found->second);
  const size_t size = pages.end - pages.begin;
  void* address = reinterpret_cast<void*>(pages.begin);
  if (mmap(address, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
    madvise(address, size, MADV_DONTNEED);
    set_access(pages, PROT_NONE);
  }
  s.freed.push_front(found->second);
  s.freed.front().written = nullptr;
  if (s.freed.size() > kRemembered) s.freed.pop_back();
  s.live.erase(found);
  return true;
}

void release_all(int device) {
  Space& s = space();
  std::vector<uintptr_t> all;
  for (const auto& [begin, a] : s.live)
    if (!several_devices() || (a.kind == MemoryKind::device && a.device == device)) all.push_back(begin);
  for (const uintptr_t begin : all) release(begin);
  if (several_devices()) return;
  std::lock_guard<std::mutex> lock(s.mutex);
  s.foreign.clear();
}

bool add_foreign(const Allocation& range) {
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  auto next = s.foreign.lower_bound(range.begin);
  if (next != s.foreign.end() && next->first < range.begin + range.size) return false;
  if (next != s.foreign.begin()) {
    const Allocation& before = std::prev(next)->second;
    if (before.begin + before.size > range.begin) return false;
  }
  s.foreign.emplace(range.begin, range);
  return true;
}

bool remove_foreign(uintptr_t begin) {
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  return s.foreign.erase(begin) != 0;
}

bool in_device_space(const void* pointer) {
  const Space& s = space();
  return reinterpret_cast<uintptr_t>(pointer) >= s.base && reinterpret_cast<uintptr_t>(pointer) < s.end;
}

bool find_allocation(const void* pointer, Allocation& found) {
  Space& s = space();
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  std::lock_guard<std::mutex> lock(s.mutex);
  const Allocation* a = containing(in_device_space(pointer) ? s.live : s.foreign, address);
  const uintptr_t managed = reinterpret_cast<uintptr_t>(__start_simt_managed),
                  managed_end = reinterpret_cast<uintptr_t>(__stop_simt_managed);
  if (a)
    found = *a;
  else if (address >= managed && address < managed_end)
    found = {managed, managed_end - managed, MemoryKind::managed, "__managed__", 0};
  else
    return false;
  return true;
}

bool is_host_memory(const void* pointer) {
  Allocation found;
  return pointer && !in_device_space(pointer) && !find_allocation(pointer, found) && is_readable(pointer);
}

bool stands_on(Side side, const void* pointer, size_t size) {
  Allocation a;
  if (!pointer || size > ~reinterpret_cast<uintptr_t>(pointer)) return false;
  if (!find_allocation(pointer, a) || reinterpret_cast<uintptr_t>(pointer) == a.begin + a.size)
    return side == Side::host && !in_device_space(pointer) && is_readable(pointer) &&
           is_readable(static_cast<const char*>(pointer) + size - 1);
  if (size > a.begin + a.size - reinterpret_cast<uintptr_t>(pointer)) return false;
  if (side == Side::device) return true;
  return a.kind == MemoryKind::managed || a.kind == MemoryKind::pinned;
}

std::string describe_address(const void* pointer) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  const std::string failed = address < 65536 ? failed_allocation() : "";
  if (!failed.empty()) return "null, or near it: " + failed;
  if (!address) return "null";
  if (address < 65536) return "null plus " + bytes(address);
  if (is_host_memory(pointer)) return "host memory";
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  const Allocation* nearest = nullptr;
  bool nearest_freed = false;
  const auto consider = [&](const Allocation& a, bool freed) {
    if (distance(a, address) > kLargestGap || (nearest && distance(*nearest, address) <= distance(a, address))) return;
    nearest = &a;
    nearest_freed = freed;
  };
  for (const auto* ranges : {&s.live, &s.foreign}) {
    const auto next = ranges->upper_bound(address);
    if (next != ranges->end()) consider(next->second, false);
    if (next != ranges->begin()) consider(std::prev(next)->second, false);
  }
  for (const Allocation& a : s.freed) consider(a, true);
  if (nearest) return describe(*nearest, address, nearest_freed);
  // An index of 32 bits that overflowed leads this far before an allocation, which is large enough for such an index.
  constexpr uintptr_t kFar = uintptr_t{16} << 31, kOfInts = size_t{1} << 30;
  for (const auto& [begin, a] : s.live)
    if (a.size >= kOfInts && address < begin && begin - address <= kFar && !nearest) nearest = &a;
  return nearest ? describe(*nearest, address, false) + ": an int index may have overflowed" : "near no allocation";
}

std::string missing_access(const void* pointer, int device) {
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  const Allocation* a = in_device_space(pointer) ? containing(s.live, reinterpret_cast<uintptr_t>(pointer)) : nullptr;
  if (!a || a->kind != MemoryKind::device || a->symmetric || reach_of(device) >> a->device & 1) return "";
  const std::string own = std::to_string(device), other = std::to_string(a->device);
  return "device " + own + " has no access to the memory of device " + other + ", where this is " +
         describe(*a, reinterpret_cast<uintptr_t>(pointer), false) + "; call cudaDeviceEnablePeerAccess(" + other +
         ", 0) after cudaSetDevice(" + own + ")";
}

std::string check_guards() {
  Space& s = space();
  open_device_memory();
  std::string sentence;
  for (const auto& [begin, a] : s.live) {
    if (a.kind == MemoryKind::pinned || (several_devices() && !is_open(s, a))) continue;  // host code overruns it too
    for (const Pages guard : {guard_before(a), guard_behind(a)}) {
      const uintptr_t at = first_overwritten(guard, a);
      if (at == guard.end) continue;
      if (sentence.empty()) sentence = "memory was overwritten " + describe(a, at, false);
      fill_guards(a);
    }
  }
  close_device_memory();
  return sentence;
}

void open_memory_of(DeviceSet devices) {
  Space& s = space();
  std::lock_guard<std::mutex> lock(s.mutex);
  const DeviceSet changes = s.reach ^ devices;
  if (!changes) return;
  const bool was_closed = s.reach == 0;
  s.reach = devices;
  for (const auto& [begin, a] : s.live)
    if (a.kind == MemoryKind::device && (a.symmetric ? was_closed || !devices : changes >> a.device & 1))
      set_access(pages_of(a), is_open(s, a) ? PROT_READ | PROT_WRITE : PROT_NONE);
}

void open_device_memory() {
  Space& s = space();
  if (several_devices() || s.open++ || !s.protecting) return;
  const Accounted accounted(s);
  set_all(s, PROT_READ | PROT_WRITE);
}

void close_device_memory() {
  Space& s = space();
  if (several_devices() || --s.open || !s.protecting) return;
  const Accounted accounted(s);
  set_all(s, PROT_NONE);
}

OpenRange::OpenRange(const void* pointer, size_t size) {
  Space& s = space();
  Allocation a;
  if (!size || s.open || !s.protecting || !find_allocation(pointer, a) || is_open(s, a)) return;
  if (several_devices()) {
    open_memory_of(s.reach | 1u << a.device);
    return;
  }
  const Accounted accounted(s);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(pointer) / page_size() * page_size();
  pages_ = reinterpret_cast<void*>(begin);
  size_ = round_up(reinterpret_cast<uintptr_t>(pointer) + size, page_size()) - begin;
  mprotect(pages_, size_, PROT_READ | PROT_WRITE);
}

OpenRange::~OpenRange() {
  Space& s = space();
  if (!pages_ || !s.protecting) return;
  const Accounted accounted(s);
  mprotect(pages_, size_, PROT_NONE);
}

}  // namespace simt
