// What an experiment tells the launches of residency.cuh.
#pragma once
#include <cstddef>

namespace ladder::hopper {

inline size_t set_aside_bytes = 0;  // of L2, for accesses that persist

}  // namespace ladder::hopper
