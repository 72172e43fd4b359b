// Work that takes time and does nothing: it keeps a device behind the others.
#pragma once
#include <cuda_runtime_api.h>

namespace ladder {

void launch_delay(int microseconds,
                  cudaStream_t stream);  // 0: launches nothing; on the CPU device, which has no time, too

}  // namespace ladder
