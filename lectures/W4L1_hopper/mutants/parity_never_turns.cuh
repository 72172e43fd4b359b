// parity_never_turns: from its second use on, a buffer counts as full as soon as its first phase has ended.
#pragma once
#include "parts.cuh"

namespace ladder::hopper::mutants::parity_never_turns {

__global__ void copy_kernel(const float* from, float* to, int64_t n, int64_t whole) {
  __shared__ alignas(128) parts::Buffers buffers;
  buffers.make_ready();
  buffers.fetch_first(from, whole);
  int buffer = 0;
  for (int64_t tile = blockIdx.x; tile < whole; tile += gridDim.x) {
    buffers.wait(buffer, false);  // the fault
    buffers.write(to, tile, buffer);
    __syncthreads();
    buffers.fetch(from, tile + int64_t{kBuffers} * gridDim.x, whole, buffer);
    if (++buffer == kBuffers) buffer = 0;
  }
  parts::copy_rest(from, to, whole, n);
}

inline const Mutant<Copy> mutant{"parity_never_turns", "every wait is for the same phase",
                                 parts::launch_tiles<copy_kernel>, "cudaErrorLaunchFailure", Shows::on_cpu_device};

}  // namespace ladder::hopper::mutants::parity_never_turns
