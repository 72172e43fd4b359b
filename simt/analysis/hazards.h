// Finds accesses to memory that nothing orders, reads of shared memory that nothing wrote, reads of asynchronous copies
// that nobody waited for; and keeps the faults that the runtime found.
#pragma once
#include <string>

#include "observer.h"

namespace simt::analysis {

Observer& hazards();
std::string hazards_json();  // a JSON array: one entry for each pair of lines, with a count

}  // namespace simt::analysis
