#pragma once
#include "common/device.h"
#include "common/operator.h"

namespace ladder {

// Throws UsageError if the problem does not fit into the memory of the host or the device, before anything is
// allocated. timing: with the buffers that a cold cache needs.
void require_memory(const Operator& op, const Shape& shape, const Device& device, bool timing);

}  // namespace ladder
