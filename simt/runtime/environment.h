// The environment variables that say how kernels run. A program may set them between its launches.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace simt {

struct Launch;

// A thread that changes the environment, as any line of a Python program may, makes getenv() read freed memory in all
// other threads. So the threads of the device itself never call it: the program's own calls note what is set.
void read_settings();                                           // called with every operation that is enqueued
std::optional<std::string> setting(std::string_view variable);  // as it was noted last; empty where it is not set
double timeout_seconds();                                       // SIMT_TIMEOUT

// Puts what they say into the launch. The sentence says which of them has a value that is not allowed; empty if none.
std::string apply_settings(Launch& launch);
std::vector<uint32_t> order_of(uint32_t count);  // of so many devices, by SIMT_ORDER
unsigned workers_asked();                        // SIMT_WORKERS, or as many as there are cores
unsigned multiprocessors();  // SIMT_MULTIPROCESSORS as it is when this is called first, or kMultiprocessors

}  // namespace simt
