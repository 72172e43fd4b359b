// What device code did, as the hooks and the device's own functions report it for the lane that runs.
#pragma once
#include "observer.h"
#include "symbols.h"

namespace simt {
class Worker;
}

namespace simt::analysis {

// Checks the access and records it; faults end the kernel. The place is the student's line. `alignment` is what CUDA
// asks for, or 0 if any will do.
void report(Worker& worker, Pc pc, const volatile void* address, size_t size, const Access& access,
            size_t alignment = 0);

inline bool hooks_ran = false;  // in this launch

// The variable or allocation at an address; its beginning is zero if nothing is known.
Named name_of(uintptr_t address);
std::string variable_text(uintptr_t address);  // "tile + 132 bytes"

}  // namespace simt::analysis
