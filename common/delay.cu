#include "common/delay.h"

#include <cuda_runtime.h>

#include "common/device.h"

namespace ladder {
namespace {

__global__ void delay_kernel(long long clocks) {
  const long long begin = clock64();
  while (clock64() - begin < clocks) {
  }
}

}  // namespace

void launch_delay(int microseconds, cudaStream_t stream) {
  constexpr long long kClocks = 1500;  // of a microsecond, or nearly
  if (microseconds > 0 && !built_for_cpu_device()) delay_kernel<<<1, 1, 0, stream>>>(kClocks * microseconds);
}

}  // namespace ladder
