// How much memory and address space this process can have.
#pragma once
#include <cstddef>

namespace simt {

struct Capacity {
  size_t total;  // physical memory, or the control group's limit if that is less
  size_t free;   // of it, what can still be had without swapping
};
Capacity host_capacity();

// The address space that the process may still take: ulimit -v, less what it has; without a limit, the largest size_t.
size_t address_space();
constexpr size_t kWorkerSpace = static_cast<size_t>(512) << 20;  // a block's stacks, and what else a worker maps

}  // namespace simt
