// What the parts of the scheduler share: scheduler.cpp runs lanes and lets them wait, gangs.cpp puts blocks into a
// worker and looks at their memory after them, block_memory.cpp is the memory that kernels ask the device about, and
// ends.cpp says why a kernel is ended.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fault.h"
#include "scheduler.h"

namespace simt {

constexpr size_t kGuard = 64 * 1024;  // inaccessible, before and after stacks and arenas

inline void count(std::atomic<uint64_t>& counter) {  // only its owner writes it
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

char* map_pages(size_t size);  // readable and writable, between guards
char* map_stack(size_t size);

inline Worker& current(const char* builtin) {
  if (!worker) {
    std::fprintf(stderr, "simt: %s was called by host code; it works only inside a kernel\n", builtin);
    std::abort();
  }
  return *worker;
}

inline std::string at_line(Site site) {
  if (!site.file) return "an unknown line";
  const std::string line = std::string(site.file) + ":" + std::to_string(site.line);
  return site.nth == 1 ? line : line + " (number " + std::to_string(site.nth) + " of the line)";
}

inline bool same_line(Site a, Site b) {
  return a.line == b.line && a.nth == b.nth && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

inline uint3 unflatten(uint64_t linear, dim3 size) {
  return {static_cast<unsigned>(linear % size.x), static_cast<unsigned>(linear / size.x % size.y),
          static_cast<unsigned>(linear / size.x / size.y)};
}

}  // namespace simt
