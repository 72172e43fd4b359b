// The environment variables that say how kernels run. A program may set them between its launches.
#pragma once
#include <string>

namespace simt {

struct Launch;

// Puts what they say into the launch. The sentence says which of them has a value that is not allowed; empty if none.
std::string read_environment(Launch& launch);
unsigned workers_asked();    // SIMT_WORKERS, or as many as there are cores
unsigned multiprocessors();  // SIMT_MULTIPROCESSORS as it is when this is called first, or kMultiprocessors

}  // namespace simt
