// The environment variables that say how kernels run. A program may set them between its launches.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace simt {

struct Launch;

// Puts what they say into the launch. The sentence says which of them has a value that is not allowed; empty if none.
std::string read_environment(Launch& launch);
std::vector<uint32_t> order_of(uint32_t count);  // of so many devices, by SIMT_ORDER
unsigned workers_asked();                        // SIMT_WORKERS, or as many as there are cores
unsigned multiprocessors();  // SIMT_MULTIPROCESSORS as it is when this is called first, or kMultiprocessors

}  // namespace simt
