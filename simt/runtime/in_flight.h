// What nothing has waited for: on a GPU a kernel may still run when its launch returns. Of an analysis.
#pragma once
#include <atomic>
#include <string>

#include "launch.h"

namespace simt {

extern std::atomic<bool> is_in_flight;       // managed or pinned memory that a kernel may write
extern std::atomic<bool> printed_in_flight;  // a kernel has printed

void starts(const Launch& launch, const LaunchConfig& config);  // it has run; under api_mutex()
void was_waited_for();
std::string unsafe_access(const void* pointer, bool polls);  // by host code: "" or what is wrong with it, said once
void say_unflushed();                                        // when the program ends

}  // namespace simt
