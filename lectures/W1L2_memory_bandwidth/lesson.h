// The program: checks, then the experiments.
#pragma once
#include <vector>

#include "variant.h"

namespace memory_bandwidth {

// The program's exit code: 0 all right, 1 a wrong copy, an impossible time or a CUDA failure, 2 a bad command line.
int run(const std::vector<Variant>& variants, int argc, char** argv);

}  // namespace memory_bandwidth
