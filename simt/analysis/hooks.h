// What device code did, as the hooks and the device's own functions report it for the lane that runs.
#pragma once
#include "events.h"
#include "symbols.h"

namespace simt {
class Worker;
}

namespace simt::analysis {

// How an access was made.
struct Access {
  Kind kind = Kind::load;
  bool is_volatile = false, is_async = false, acquires = false, releases = false;
  size_t alignment = 0;     // that CUDA asks for; 0 where any will do
  bool overwrites = false;  // an atomic store or exchange: it does not ask what was there
  bool of_block = false;    // an atomic of that scope
};

// Checks the access and records it; faults end the kernel. The place is the student's line.
void report(Worker& worker, Pc pc, const volatile void* address, size_t size, const Access& access);

// The variable or allocation at an address; its beginning is zero where nothing is known.
Named name_of(uintptr_t address);
std::string variable_text(uintptr_t address);  // "tile + 132 bytes"

}  // namespace simt::analysis
