#pragma once
#include "common/device.h"
#include "common/operator.h"
#include "common/options.h"

namespace ladder {

// Throws UsageError if the problem does not fit into the memory of the host or the device, before anything is
// allocated. timing: with the buffers that a cold cache needs.
void require_memory(const Operator& op, const Shape& shape, const Device& device, bool timing);

// The main input for these stages: on the CPU device one that the command line does not give is made smaller until it
// fits into memory. Prints a line where it is.
Shape fitting_shape(const std::vector<AnyStage>& stages, const Options& options, const Device& device);

}  // namespace ladder
