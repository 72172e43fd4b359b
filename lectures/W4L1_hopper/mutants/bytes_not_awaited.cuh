// bytes_not_awaited: the tile is read without waiting for its bytes.
#pragma once
#include "parts.cuh"

namespace ladder::hopper::mutants::bytes_not_awaited {

__global__ void copy_kernel(const float* from, float* to, int64_t n, int64_t whole) {
  __shared__ alignas(128) parts::Buffers buffers;
  buffers.make_ready();
  buffers.fetch_first(from, whole);
  int buffer = 0;
  for (int64_t tile = blockIdx.x; tile < whole; tile += gridDim.x) {
    buffers.write(to, tile, buffer);  // the fault
    __syncthreads();
    buffers.fetch(from, tile + int64_t{kBuffers} * gridDim.x, whole, buffer);
    if (++buffer == kBuffers) buffer = 0;
  }
  parts::copy_rest(from, to, whole, n);
}

inline const Mutant<Copy> mutant{"bytes_not_awaited", "no thread waits for the bytes", parts::launch_tiles<copy_kernel>,
                                 "elements wrong", Shows::on_cpu_device};

}  // namespace ladder::hopper::mutants::bytes_not_awaited
